"""A proxy for HTTP/1.1: python -m tests.python.support.proxy PORT_OF_THE_SERVER LATENCY

Prints its address. Answers each request ``LATENCY`` seconds late. ``PUT /__proxy__/faults`` sets a
list of faults, each for one request; ``PUT /__proxy__/release`` continues the requests that are
held; ``GET /__proxy__/requests`` lists the requests. See stores.py.
"""

from __future__ import annotations

import http.client
import json
import socket
import struct
import sys
import threading
import time
from typing import Any

from tests.python.support.http_servers import AnsweringHandler, serve

BEHIND, LATENCY = int(sys.argv[1]), float(sys.argv[2])
BEGIN = time.monotonic()
LOCK = threading.Lock()
RELEASE = threading.Condition(LOCK)
REQUESTS: list[dict[str, Any]] = []
FAULTS: list[dict[str, Any]] = []


class Handler(AnsweringHandler):
    def setup(self) -> None:
        super().setup()
        self.behind = http.client.HTTPConnection("127.0.0.1", BEHIND)

    def finish(self) -> None:
        self.behind.close()
        super().finish()

    def handle_any(self) -> None:
        begin = time.monotonic() - BEGIN
        body = self.read_body()
        if self.path.startswith("/__proxy__/"):
            return self.control(body)
        fault = self.take_fault()
        row = {
            "method": self.command,
            "path": self.path,
            "range": self.headers.get("Range") or "",
            "begin": begin,
            "end": 0.0,
            "status": 0,
            "held": fault["kind"] == "hold",
        }
        with LOCK:
            REQUESTS.append(row)
            RELEASE.wait_for(lambda: not row["held"])
        time.sleep(LATENCY + (fault["seconds"] if fault["kind"] == "delay" else 0))
        if fault["kind"] == "reset":
            return self.reset()
        if fault["kind"] == "status":
            status, headers, data = fault["status"], {}, fault.get("body", "").encode()
        else:
            status, headers, data = self.forward(body)
        row["status"], row["end"] = status, time.monotonic() - BEGIN
        return self.pass_on(status, headers, data, cut=fault["kind"] == "cut")

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any

    def take_fault(self) -> dict[str, Any]:
        with LOCK:
            for number, fault in enumerate(FAULTS):
                if fault.get("path", "") in self.path:
                    return FAULTS.pop(number)
        return {"kind": "none"}

    def forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        skipped = ("host", "connection", "expect")
        headers = {k: v for k, v in self.headers.items() if k.lower() not in skipped}
        headers["Host"] = self.headers["Host"]
        try:
            self.behind.request(self.command, self.path, body or None, headers)
            answer = self.behind.getresponse()
        except (OSError, http.client.HTTPException):  # the server closed an idle connection
            self.behind.close()
            self.behind.request(self.command, self.path, body or None, headers)
            answer = self.behind.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()

    def pass_on(self, status: int, headers: dict[str, str], data: bytes, cut: bool) -> None:
        self.send_response(status)
        length = str(len(data))
        for name, value in headers.items():
            if name.lower() == "content-length" and self.command == "HEAD":
                length = value
            if name.lower() not in (
                "transfer-encoding",
                "connection",
                "content-length",
                "date",
                "server",
            ):
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[: len(data) // 2] if cut else data)
        if cut:
            self.wfile.flush()
            self.reset()

    def reset(self) -> None:
        """Closes the connection with a reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def control(self, body: bytes) -> None:
        what, given = self.path.rpartition("/")[2], json.loads(body or b"null")
        rows = FAULTS if what == "faults" else REQUESTS
        with LOCK:
            if what == "release":
                for row in REQUESTS:
                    row["held"] = False
                RELEASE.notify_all()
            elif self.command == "PUT":
                rows[:] = given
            data = json.dumps(rows).encode()
        self.answer(200, data)


if __name__ == "__main__":
    serve(Handler)
