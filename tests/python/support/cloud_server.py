"""A server of objects in memory: python -m tests.python.support.cloud_server google | azure | hub

Prints its address. It answers the requests of obstore and huggingface_hub, and is no emulator of
these services:

- ``google``: the XML interface of Cloud Storage (PUT, GET, HEAD, DELETE, multipart uploads);
- ``azure``: the REST interface of Blob Storage (Put Blob, Put Block, Put Block List, Get, Blob
  Batch), whose ranges cannot be counted from the end;
- ``hub``: the parts of Hugging Face's interface that huggingface_hub uses for regular files of the
  dataset ``user/data``, where each commit keeps its files.

Signatures and tokens are not compared.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from email.utils import formatdate
from typing import ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

from tests.python.support.http_servers import AnsweringHandler, find_range, serve


class Handler(AnsweringHandler):
    """Objects by path, and uploads in parts by their identification."""

    objects: ClassVar[dict[str, bytes]] = {}
    parts: ClassVar[dict[str, dict[str, bytes]]] = {}
    counts_from_end = True

    def parse(self) -> None:
        """Sets the path, the query and the body of the request."""
        address = urlsplit(self.path)
        self.place = unquote(address.path)
        self.query = {name: values[0] for name, values in parse_qs(address.query, True).items()}
        self.body = self.read_body()

    def do_GET(self) -> None:
        self.parse()
        self.send_object(self.objects.get(self.place))

    do_HEAD = do_GET

    def do_DELETE(self) -> None:
        self.parse()
        found = self.objects.pop(self.place, None)
        self.answer(404 if found is None else 204)

    def send_object(self, data: bytes | None) -> None:
        """Answers with the bytes asked for, which may need a version."""
        if data is None:
            return self.answer(404)
        headers = {"ETag": tag(data), "Last-Modified": formatdate(1e9, usegmt=True)}
        if self.headers.get("If-Match") not in (None, headers["ETag"]):
            return self.answer(412, b"", headers)
        wanted = self.headers.get("Range")
        if not wanted:
            return self.answer(200, data, headers)
        if wanted.startswith("bytes=-") and not self.counts_from_end:
            return self.answer(400)
        begin, end = find_range(wanted, len(data))
        if begin >= end:
            return self.answer(416)
        headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(data)}"
        return self.answer(206, data[begin:end], headers)

    def answer_json(self, value: object) -> None:
        self.answer(200, json.dumps(value).encode(), {"Content-Type": "application/json"})


def tag(data: bytes) -> str:
    return f'"{hashlib.sha1(data).hexdigest()}"'


class Google(Handler):
    """Cloud Storage. A path is /BUCKET/NAME."""

    def do_PUT(self) -> None:
        self.parse()
        if "partNumber" in self.query:
            self.parts[self.query["uploadId"]][self.query["partNumber"]] = self.body
        else:
            self.objects[self.place] = self.body
        self.answer(200, b"", {"ETag": tag(self.body)})

    def do_POST(self) -> None:
        self.parse()
        if "uploads" in self.query:
            name = f"upload{len(self.parts)}"
            self.parts[name] = {}
            self.answer(200, f"<R><UploadId>{name}</UploadId></R>".encode())
            return
        parts = self.parts.pop(self.query["uploadId"])
        numbers = re.findall(r"<PartNumber>(\d+)", self.body.decode())
        self.objects[self.place] = b"".join(parts[number] for number in numbers)
        etag = tag(self.objects[self.place])
        self.answer(200, f"<R><ETag>{etag}</ETag></R>".encode())

    def do_DELETE(self) -> None:
        if "uploadId=" in self.path:
            self.parse()
            del self.parts[self.query["uploadId"]]
            return self.answer(204)
        return super().do_DELETE()


class Azure(Handler):
    """Blob Storage. A path is /ACCOUNT/CONTAINER/NAME."""

    counts_from_end = False

    def do_PUT(self) -> None:
        self.parse()
        kind, blocks = self.query.get("comp"), self.parts.setdefault(self.place, {})
        if kind == "block":
            blocks[self.query["blockid"]] = self.body
            return self.answer(201)
        data = self.body
        if kind == "blocklist":
            names = re.findall(r"<(?:Uncommitted|Latest)>([^<]+)<", data.decode())
            data = b"".join(blocks[name] for name in names)
        elif self.headers.get("x-ms-blob-type") != "BlockBlob":
            return self.answer(400)
        self.objects[self.place] = data
        return self.answer(201, b"", {"ETag": tag(data)})

    def do_POST(self) -> None:
        """A batch: requests to delete blobs, each of which has an answer of its own."""
        self.parse()
        answers = [
            f"--batch\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\n"
            f"HTTP/1.1 {self.delete(unquote(name))}\r\n\r\n\r\n"
            for number, name in enumerate(re.findall(r"DELETE (/\S+) HTTP", self.body.decode()))
        ]
        body = "".join([*answers, "--batch--\r\n"]).encode()
        self.answer(202, body, {"Content-Type": "multipart/mixed; boundary=batch"})

    def delete(self, name: str) -> str:
        account = self.place.split("/")[1]
        path = name if name.startswith(f"/{account}/") else f"/{account}{name}"
        return "404 Not Found" if self.objects.pop(path, None) is None else "202 Accepted"


class Hub(Handler):
    """A dataset of Hugging Face's Hub. Commits are numbered from 0."""

    commits: ClassVar[list[dict[str, bytes]]] = [{}]
    api = "/api/datasets/user/data"

    def find(self, revision: str) -> dict[str, bytes] | None:
        """The files of a commit or of the branch; None: there is no such revision."""
        names = [commit_name(number) for number in range(len(self.commits))]
        if revision == "main":
            return self.commits[-1]
        return self.commits[names.index(revision)] if revision in names else None

    def do_GET(self) -> None:
        self.parse()
        if self.place in (self.api, f"{self.api}/revision/main"):
            return self.answer_json({"id": "user/data", "sha": commit_name(len(self.commits) - 1)})
        found = re.fullmatch(r"/datasets/user/data/resolve/([^/]+)/(.+)", self.place)
        files = self.find(found[1]) if found else None
        if found is None or files is None:
            return self.answer(404, b"", {"X-Error-Code": "RepoNotFound"})
        return self.send_object(files.get(found[2]))

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self.parse()
        what, _, revision = self.place.removeprefix(f"{self.api}/").partition("/")
        files = self.find(revision)
        if files is None:
            self.answer(404, b"", {"X-Error-Code": "RevisionNotFound"})
        elif what == "paths-info":
            names = parse_qs(self.body.decode())["paths"]
            self.answer_json([describe(name, files[name]) for name in names if name in files])
        elif what == "preupload":
            asked = [one["path"] for one in json.loads(self.body)["files"]]
            how = {"uploadMode": "regular", "shouldIgnore": False}
            self.answer_json({"files": [{"path": path, **how} for path in asked]})
        else:
            assert what == "commit", self.path
            self.commit(dict(files))

    def commit(self, files: dict[str, bytes]) -> None:
        for line in self.body.splitlines():
            change = json.loads(line)
            if change["key"] == "file":
                files[change["value"]["path"]] = base64.b64decode(change["value"]["content"])
            elif change["key"] == "deletedFile":
                del files[change["value"]["path"]]
        self.commits.append(files)
        oid = commit_name(len(self.commits) - 1)
        url = f"http://{self.headers['Host']}/datasets/user/data/commit/{oid}"
        self.answer_json({"commitUrl": url, "commitOid": oid})


def commit_name(number: int) -> str:
    return f"{number:040x}"


def describe(name: str, data: bytes) -> dict[str, object]:
    return {"type": "file", "path": name, "size": len(data), "oid": tag(data).strip('"')}


if __name__ == "__main__":
    kinds = {"google": Google, "azure": Azure, "hub": Hub}
    serve(kinds[sys.argv[1]])
