"""Servers of objects for tests: processes of their own on the loopback device, behind a proxy that
adds latency and faults, and keeps a list of the requests."""

from __future__ import annotations

import json
import os
import socket
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.commands import Command
from tests.support.ports import reserve_port
from tests.support.waiting import wait_until

_HERE = Path(__file__).parent
#: Stands for the port of a server in its command.
PORT = object()
#: Seconds that the proxy adds to each answer.
LATENCY = 0.02
#: moto asks for a signature, and does not compare it.
_SIGNED = (
    "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request,"
    " SignedHeaders=host, Signature=0"
)
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": "us-east-1",
}


@dataclass(frozen=True)
class Request:
    """A request, as the proxy saw it."""

    method: str
    path: str
    range: str
    #: Seconds since the proxy began, of the request and of its answer.
    begin: float
    end: float
    status: int


class Proxy:
    """The proxy in front of a server."""

    def __init__(self, address: str) -> None:
        self.address = address

    def requests(self) -> list[Request]:
        """The requests since the last :meth:`clear`."""
        return [Request(**one) for one in self._call("GET", "requests")]

    def clear(self) -> None:
        """Forgets the requests and the faults."""
        self._call("PUT", "requests", [])
        self._call("PUT", "faults", [])

    def inject(self, *faults: dict[str, Any]) -> None:
        """Treats the next requests: ``{"kind": "status", "status": 503}``, ``{"kind": "reset"}``,
        ``{"kind": "cut"}`` (a reset within the body), ``{"kind": "delay", "seconds": 5}``,
        ``{"kind": "hold", "requests": 9}`` (until so many have come since :meth:`clear`) or
        ``{"kind": "none"}``; ``"path"`` selects requests whose path contains it, ``"body"`` is the
        body of a status."""
        self._call("PUT", "faults", list(faults))

    def _call(self, method: str, what: str, value: Any = None) -> Any:
        request = urllib.request.Request(
            f"{self.address}/__proxy__/{what}", json.dumps(value).encode(), method=method
        )
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read() or b"null")


@contextmanager
def run_server(*command: object) -> Iterator[str]:
    """A running server; its address. ``PORT`` in the command stands for its port. It is ended after
    the test."""
    with reserve_port() as port:
        words = [port if word is PORT else word for word in command]
        running = Command(words, stdout=-3, stderr=-3)
        try:
            wait_until(lambda: _listens(port), f"{command[1]} listens")
            yield f"http://127.0.0.1:{port}"
        finally:
            running.end()


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@contextmanager
def run_proxy(address: str, latency: float = LATENCY) -> Iterator[Proxy]:
    """A proxy in front of the server at ``address``."""
    behind = address.rpartition(":")[2]
    with run_server(sys.executable, _HERE / "proxy.py", PORT, behind, latency) as proxy:
        yield Proxy(proxy)


@contextmanager
def run_s3_server(latency: float = LATENCY) -> Iterator[Proxy]:
    """moto's S3 server behind a proxy, with a bucket called "bucket"; the environment has its
    endpoint and credentials."""
    with ExitStack() as stack:
        server = stack.enter_context(run_server(sys.executable, "-m", "moto.server", "-p", PORT))
        proxy = stack.enter_context(run_proxy(server, latency))
        put(f"{proxy.address}/bucket", b"")
        before = dict(os.environ)
        os.environ.update(CREDENTIALS, AWS_ENDPOINT_URL=proxy.address)
        try:
            yield proxy
        finally:
            os.environ.clear()
            os.environ.update(before)


@contextmanager
def run_http_server(directory: Path, latency: float = LATENCY) -> Iterator[Proxy]:
    """A server of the files of a directory, with ranges, behind a proxy."""
    command = [sys.executable, _HERE / "range_server.py", PORT, directory]
    with run_server(*command) as address, run_proxy(address, latency) as proxy:
        yield proxy


def put(url: str, data: bytes) -> None:
    """Writes an object without pario."""
    _ask("PUT", url, data)


def get(url: str) -> bytes:
    """Reads an object without pario."""
    return _ask("GET", url)


def _ask(method: str, url: str, data: bytes | None = None) -> bytes:
    headers = {"Authorization": _SIGNED, "Content-Type": "application/octet-stream"}
    request = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.urlopen(request) as answer:
        return bytes(answer.read())
