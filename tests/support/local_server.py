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
        self.address = f"http://127.0.0.1:{self.server_port}"

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


def cut_after(length: int | None) -> Behaviour:
    """Answer as a server that knows ranges, and end the connection after so many bytes of the
    body.
    """

    def behave(request: Request) -> None:
        content, tag = request.server.content, request.server.tag
        headers = {} if tag is None else {"ETag": tag}
        found = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range") or "")
        if found is None or request.headers.get("If-Range") != tag:
            request.answer(200, content[:length], headers, len(content))
            return

        start, size = int(found[1]), len(content)
        part = f"{start}-{size - 1}" if start < size else "*"
        headers["Content-Range"] = f"bytes {part}/{size}"
        rest = content[start:]
        request.answer(206 if rest else 416, rest[:length], headers, len(rest))

    return behave


serve = cut_after(None)


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
    content, last = request.server.content, len(request.server.content) - 1
    request.answer(206, content, {"Content-Range": f"bytes 0-{last}/{last + 1}"})


def now_another_version(content: bytes, then: Behaviour = serve) -> Behaviour:
    """From this request on there is another file under the address."""

    def behave(request: Request) -> None:
        request.server.content, request.server.tag = content, '"second"'
        then(request)

    return behave
