"""A server of files with ranges: python range_server.py DIRECTORY

Prints its address. Knows ``Range: bytes=A-B``, ``bytes=A-`` and ``bytes=-N``, ETag (size and time)
and If-Match.
"""

from __future__ import annotations

import sys
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

DIRECTORY = Path(sys.argv[1])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        path = DIRECTORY / self.path.lstrip("/")
        if not path.is_file():
            return self.answer(404, b"")
        facts = path.stat()
        headers = {
            "ETag": f'"{facts.st_size:x}-{facts.st_mtime_ns:x}"',
            "Last-Modified": formatdate(facts.st_mtime, usegmt=True),
        }
        if self.headers.get("If-Match") not in (None, headers["ETag"]):
            return self.answer(412, b"", headers)
        begin, end, status = 0, facts.st_size, 200
        if (wanted := self.headers.get("Range")) and facts.st_size:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            begin = int(first) if first else max(0, end - int(last))
            end = min(end, int(last) + 1) if first and last else end
            status = 206
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{facts.st_size}"
        with path.open("rb") as file:
            file.seek(begin)
            return self.answer(status, file.read(end - begin), headers)

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.answer(405, b"")

    def answer(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


if __name__ == "__main__":
    server = Server(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
