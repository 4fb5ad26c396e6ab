"""A server of files with ranges: python -m tests.python.support.range_server DIRECTORY [no-etags]

Prints its address. Knows ``Range: bytes=A-B``, ``bytes=A-`` and ``bytes=-N``, ETag (size and time)
and If-Match.
"""

from __future__ import annotations

import sys
from email.utils import formatdate
from pathlib import Path

from tests.python.support.http_servers import AnsweringHandler, find_range, serve

DIRECTORY = Path(sys.argv[1])
HAS_ETAGS = sys.argv[2:] != ["no-etags"]


class Handler(AnsweringHandler):
    def do_GET(self) -> None:
        path = DIRECTORY / self.path.lstrip("/")
        if not path.is_file():
            return self.answer(404)
        facts = path.stat()
        headers = {"Last-Modified": formatdate(facts.st_mtime, usegmt=True)}
        if HAS_ETAGS:
            headers["ETag"] = f'"{facts.st_size:x}-{facts.st_mtime_ns:x}"'
        if self.headers.get("If-Match") not in (None, headers.get("ETag")):
            return self.answer(412, b"", headers)
        begin, end, status = 0, facts.st_size, 200
        if (wanted := self.headers.get("Range")) and facts.st_size:
            status, (begin, end) = 206, find_range(wanted, facts.st_size)
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{facts.st_size}"
        with path.open("rb") as file:
            file.seek(begin)
            return self.answer(status, file.read(end - begin), headers)

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        self.read_body()
        self.answer(405)


if __name__ == "__main__":
    serve(Handler)
