"""Servers of objects for tests: processes of their own on the loopback device, behind a proxy that
adds latency and faults, and keeps a list of the requests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pario import objects
from pario.objects.hedging import Hedge
from tests.support.commands import start_command
from tests.support.waiting import LateError, wait_until

if TYPE_CHECKING:
    import pytest

_ROOT = Path(__file__).parents[3]
#: Seconds that the proxy adds to each answer.
LATENCY = 0.02
#: moto asks for a signature, and does not compare it.
_SIGNED = (
    "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request,"
    " SignedHeaders=host, Signature=0"
)
#: moto's server on a port that the kernel chooses.
_S3_SERVER = """
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
app = DomainDispatcherApplication(create_backend_app)
server = make_server("127.0.0.1", 0, app, threaded=True)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
"""
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
    held: bool


class Proxy:
    """The proxy in front of a server."""

    def __init__(self, address: str) -> None:
        self.address = address

    def requests(self) -> list[Request]:
        """The requests since the last :meth:`clear`."""
        return [Request(**one) for one in self._call("GET", "requests")]

    def clear(self) -> None:
        """Forgets the requests and the faults, and continues requests that are held."""
        self.continue_all()
        self._call("PUT", "requests", [])

    def continue_all(self) -> None:
        """Forgets the faults, and continues requests that are held."""
        self._call("PUT", "faults", [])
        self.release()

    def release(self) -> None:
        """Continues the requests that are held now. When it returns, they are held no more."""
        self._call("PUT", "release")

    def hold_until(self, enough: Callable[[list[Request]], bool]) -> None:
        """Waits until enough requests are held at the same time, and continues them."""

        def are_held() -> bool:
            return enough([one for one in self.requests() if one.held])

        try:
            wait_until(are_held, "enough requests are held at the same time")
        except LateError as late:
            late.add_note("\n".join(map(str, self.requests())))
            raise
        self.release()

    def inject(self, *faults: dict[str, Any]) -> None:
        """Treats the next requests: ``{"kind": "status", "status": 503}``, ``{"kind": "reset"}``,
        ``{"kind": "cut"}`` (a reset within the body), ``{"kind": "delay", "seconds": 5}``,
        ``{"kind": "hold"}`` (until a release) or ``{"kind": "none"}``; ``"path"`` selects requests
        whose path contains it, ``"body"`` is the body of a status."""
        self._call("PUT", "faults", list(faults))

    def _call(self, method: str, what: str, value: Any = None) -> Any:
        request = urllib.request.Request(
            f"{self.address}/__proxy__/{what}", json.dumps(value).encode(), method=method
        )
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read() or b"null")


@contextmanager
def run_server(command: Sequence[object]) -> Iterator[str]:
    """A running server, which prints its address; the address. It is ended after the test."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "cwd": _ROOT}
    with start_command(command, **options) as running:
        address = running.stdout.readline().strip()
        assert address, f"{command} ended before it listened"
        yield address


def _module(name: str, *arguments: object) -> list[object]:
    """The command of a server of this package."""
    return [sys.executable, "-m", f"{__package__}.{name}", *arguments]


@contextmanager
def run_proxy(address: str, latency: float = LATENCY) -> Iterator[Proxy]:
    """A proxy in front of the server at ``address``."""
    command = _module("proxy", address.rpartition(":")[2], latency)
    with run_server(command) as proxy:
        yield Proxy(proxy)


@contextmanager
def run_s3_server(latency: float = LATENCY) -> Iterator[Proxy]:
    """moto's S3 server behind a proxy, with a bucket called "bucket"; the environment has its
    endpoint and credentials."""
    with run_server([sys.executable, "-c", _S3_SERVER]) as s3, run_proxy(s3, latency) as proxy:
        put(f"{proxy.address}/bucket", b"")
        before = dict(os.environ)
        os.environ.update(CREDENTIALS, AWS_ENDPOINT_URL=proxy.address)
        try:
            yield proxy
        finally:
            os.environ.clear()
            os.environ.update(before)


@contextmanager
def run_http_server(directory: Path, latency: float = LATENCY, *options: str) -> Iterator[Proxy]:
    """A server of the files of a directory, with ranges, behind a proxy."""
    with (
        run_server(_module("range_server", directory, *options)) as address,
        run_proxy(address, latency) as proxy,
    ):
        yield proxy


@contextmanager
def run_cloud_server(kind: str, latency: float = 0) -> Iterator[Proxy]:
    """A server of :mod:`cloud_server` behind a proxy."""
    with run_server(_module("cloud_server", kind)) as address, run_proxy(address, latency) as proxy:
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


def isolate_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the stores of other tests, which have other servers; requests, which tests count, are
    not repeated."""
    monkeypatch.setattr(objects._objects, "_stores", {})
    monkeypatch.setattr(Hedge, "_may_repeat", lambda self: False)
