"""A web server on this machine with scripted misbehaviour, request by request."""

from __future__ import annotations

import contextlib
import gzip
import threading
from collections.abc import Callable, Iterator, Mapping
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

    def do_HEAD(self) -> None:
        """Describe the file as the hub of Hugging Face does."""
        length = str(len(self.server.content))
        headers = {"ETag": '"first"', "X-Repo-Commit": "0" * 40, "Content-Length": length}
        self.answer(200, b"", headers)

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, code: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Answer with these headers alone; the end of the connection is that of the body."""
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """Serves `content` under any path; `requests` are the headers of each request."""

    daemon_threads = True

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Request)
        self.content = content
        self.script: list[Behaviour] = []
        self.requests: list[dict[str, str]] = []
        self.released = threading.Event()
        self.address = f"http://127.0.0.1:{self.server_port}"


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
    """End the connection after so many bytes of the file."""

    def behave(request: Request) -> None:
        content = request.server.content
        request.answer(200, content[:length], {"Content-Length": str(len(content))})

    return behave


serve = cut_after(None)


def stall_after(length: int) -> Behaviour:
    """Send so many bytes, then nothing, with the connection open."""

    def behave(request: Request) -> None:
        cut_after(length)(request)
        request.wfile.flush()
        request.server.released.wait()

    return behave


def headers(headers: dict[str, str]) -> Behaviour:
    """Serve the file with these headers alone."""
    return lambda request: request.answer(200, request.server.content, headers)


def endless(request: Request) -> None:
    request.answer(200, b"", {})
    while not request.server.released.is_set():
        request.wfile.write(bytes(1 << 16))


def bomb(request: Request) -> None:
    request.answer(200, gzip.compress(b" low" * 1_250_000), {})


def refuse(code: int, **headers: str) -> Behaviour:
    return lambda request: request.answer(code, b"no", headers)


def redirect_to(address: str) -> Behaviour:
    return refuse(302, Location=address)
