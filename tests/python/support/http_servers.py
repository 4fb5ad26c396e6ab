"""The common parts of the servers of tests, each of which is a program of its own."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class AnsweringHandler(BaseHTTPRequestHandler):
    """Keeps connections, logs nothing, and answers a request by one call."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def read_body(self) -> bytes:
        """The body of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status: int, data: bytes = b"", headers: dict[str, str] | None = None) -> None:
        """Sends an answer; without its data to HEAD."""
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


def find_range(wanted: str, size: int) -> tuple[int, int]:
    """The begin and end of ``bytes=A-B``, ``bytes=A-`` or ``bytes=-N`` of ``size`` bytes."""
    first, _, last = wanted.removeprefix("bytes=").partition("-")
    begin = int(first) if first else max(0, size - int(last))
    return begin, min(size, int(last) + 1) if first and last else size


def serve(handler: type[BaseHTTPRequestHandler]) -> None:
    """Prints the address of a new server on the loopback device, and serves until it is killed."""
    server = _Server(("127.0.0.1", 0), handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
