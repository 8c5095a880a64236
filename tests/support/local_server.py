"""A web server on this machine with scripted misbehaviour, request by request."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Behaviour = Callable[["Request"], None]


class Request(BaseHTTPRequestHandler):
    """One request; what it answers is the server's next behaviour, or the file as it should be."""

    server: Server

    def do_GET(self) -> None:
        self.server.requests.append(dict(self.headers))
        script = self.server.script
        with contextlib.suppress(ConnectionError):
            (script.pop(0) if script else serve)(self)

    def log_message(self, *_: object) -> None:
        pass

    def answer(
        self, code: int, body: bytes, headers: dict[str, str] | None = None, size: int | None = None
    ) -> None:
        self.send_response(code)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if size is None else size))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """Serves `content` under any path, as the version `tag`; `requests` are the headers of each
    request.
    """

    daemon_threads = True

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Request)
        self.content = content
        self.tag: str | None = '"first"'
        self.script: list[Behaviour] = []
        self.requests: list[dict[str, str]] = []
        self.released = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def ranges(self) -> list[str | None]:
        """The range in each request."""
        return [headers.get("Range") for headers in self.requests]


@contextlib.contextmanager
def serving(content: bytes) -> Iterator[Server]:
    with Server(content) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            server.shutdown()
            thread.join()


def part_of(request: Request) -> tuple[int, dict[str, str], bytes]:
    """What a server that knows ranges answers: status, headers, body."""
    server = request.server
    headers = {} if server.tag is None else {"ETag": server.tag}
    found = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range") or "")
    if found is None or request.headers.get("If-Range") != server.tag:
        return 200, headers, server.content
    start, size = int(found[1]), len(server.content)
    if start >= size:
        return 416, {**headers, "Content-Range": f"bytes */{size}"}, b""
    return (
        206,
        {**headers, "Content-Range": f"bytes {start}-{size - 1}/{size}"},
        server.content[start:],
    )


def serve(request: Request) -> None:
    code, headers, body = part_of(request)
    request.answer(code, body, headers)


def cut_after(length: int) -> Behaviour:
    """End the connection after so many bytes of the body."""

    def behave(request: Request) -> None:
        code, headers, body = part_of(request)
        request.answer(code, body[:length], headers, len(body))

    return behave


def stall_after(length: int) -> Behaviour:
    """Send so many bytes, then nothing, with the connection open."""

    def behave(request: Request) -> None:
        cut_after(length)(request)
        request.wfile.flush()
        request.server.released.wait()

    return behave


def no_ranges(request: Request) -> None:
    request.answer(200, request.server.content)


def refuse(code: int, **headers: str) -> Behaviour:
    return lambda request: request.answer(code, b"no", headers)


def redirect(request: Request) -> None:
    """Send the client to the same server under another name."""
    other_host = request.server.address.replace("127.0.0.1", "localhost")
    refuse(302, Location=f"{other_host}/elsewhere")(request)


def another_range(request: Request) -> None:
    """Answer with the beginning, whatever was requested."""
    content = request.server.content
    request.answer(206, content, {"Content-Range": f"bytes 0-{len(content) - 1}/{len(content)}"})


def now_another_version(content: bytes, then: Behaviour = serve) -> Behaviour:
    """From this request on there is another file under the address."""

    def behave(request: Request) -> None:
        request.server.content, request.server.tag = content, '"second"'
        then(request)

    return behave
