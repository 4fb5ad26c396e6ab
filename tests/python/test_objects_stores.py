"""Stores of fsspec and of Hugging Face's Hub, in the memory of this process."""

from __future__ import annotations

import errno
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pario import objects
from pario.objects import stores
from tests.python.support.stores import isolate_stores

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
from fsspec.implementations.memory import MemoryFileSystem  # noqa: E402

pytestmark = pytest.mark.system  # whose set-up installs fsspec
#: The classes of fsspec by their schemes.
KNOWN = sys.modules["fsspec.registry"]._registry


class Files(MemoryFileSystem):
    """Files in memory, the requests for which end with ``error`` if there is one."""

    protocol = "files"
    cachable = False
    store: dict[str, Any] = {}  # noqa: RUF012
    pseudo_dirs = [""]  # noqa: RUF012
    error: Exception | None = None

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + path.partition("://")[2].strip("/") if "://" in path else path

    def cat_file(self, *arguments: Any, **options: Any) -> Any:
        if Files.error:
            raise Files.error
        return super().cat_file(*arguments, **options)


@pytest.fixture(autouse=True)
def files(monkeypatch: pytest.MonkeyPatch) -> None:
    isolate_stores(monkeypatch)
    monkeypatch.setattr(Files, "store", {})
    monkeypatch.setitem(KNOWN, "files", Files)


def test_objects_are_written_read_and_removed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(range(100)))
    objects.upload(tmp_path / "a", "files://place/a")
    objects.write("files://place/b", b"")
    assert {name: file.getvalue() for name, file in Files.store.items()} == {
        "/place/a": bytes(range(100)),
        "/place/b": b"",
    }
    size, _, version, tail = objects._objects.open("files://place/a", 3)
    assert (size, bytes(tail)) == (100, b"abc")
    assert objects._objects.read("files://place/a", version, size, 10, 12) == b"\n\v"
    assert objects.read("files://place/b") == b""
    objects.remove("files://place/a")
    with pytest.raises(FileNotFoundError, match="files://place/a"):
        objects.read("files://place/a")


def test_an_update_gets_the_bytes_or_none_of_a_missing_object() -> None:
    found: list[bytes | None] = []

    def change(content: bytes | None) -> bytes:
        found.append(content)
        return (content or b"") + b"+"

    for _ in range(3):
        objects.update("files://place/count", change)
    assert found == [None, b"+", b"++"]
    assert objects.read("files://place/count") == b"+++"


@pytest.mark.parametrize(
    ("error", "number", "words"),
    [
        (PermissionError("no"), errno.EACCES, "access is denied: no"),
        (
            PermissionError("ExpiredToken"),
            errno.EACCES,
            "the credentials have expired; renew them: ExpiredToken",
        ),
        (NotImplementedError("ranges"), errno.EOPNOTSUPP, "ranges"),
        (TimeoutError(errno.ETIMEDOUT, "late"), errno.ETIMEDOUT, "late"),
        (ValueError("bad answer"), errno.EIO, "ValueError: bad answer"),
    ],
)
def test_errors_of_a_file_system_are_errors_of_the_object(
    error: Exception, number: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects.write("files://place/a", b"data")
    monkeypatch.setattr(Files, "error", error)
    with pytest.raises(OSError) as found:
        objects.read("files://place/a")
    assert (found.value.errno, found.value.strerror) == (number, words)
    assert found.value.filename == "files://place/a"


def test_an_unknown_scheme_is_named() -> None:
    with pytest.raises(OSError, match="no store for nowhere://: Protocol not known: nowhere"):
        objects.read("nowhere://place/a")


@pytest.mark.parametrize(
    ("name", "reason"),
    [("", "expected the name"), ("/dir/", "expected the name"), ("/a/../b", "Could not parse")],
)
def test_a_url_that_names_no_object_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, reason: str
) -> None:
    """No request is made."""
    pytest.importorskip("obstore", reason="obstore is not installed")
    isolate_stores(monkeypatch)
    for act in (objects.read, objects.size_of):
        with pytest.raises(OSError, match=f"{reason}.*'s3://bucket{name}'") as found:
            act(f"s3://bucket{name}")
        assert found.value.errno == errno.EINVAL


def test_the_missing_package_of_a_file_system_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "paramiko", None)
    with pytest.raises(
        OSError, match=r"sftp:// needs the package paramiko: pip install paramiko: 'sftp"
    ):
        objects.read("sftp://host/a")
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(OSError, match=r"gs:// needs the package obstore: pip install obstore: 'gs"):
        objects.read("gs://bucket/a")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({}, False),
        ({"AWS_PROFILE": "work"}, True),
        ({"AWS_PROFILE": "work", "AWS_ACCESS_KEY_ID": "key"}, False),
        ({"AWS_PROFILE": "work", "AWS_SKIP_SIGNATURE": "true"}, False),
        ({"AWS_SHARED_CREDENTIALS_FILE": __file__}, True),
        ({"AWS_SHARED_CREDENTIALS_FILE": __file__ + ".none"}, False),
    ],
)
def test_a_profile_gives_the_credentials_that_the_environment_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, names: dict[str, str], expected: bool
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in ({"HOME": str(tmp_path)} | names).items():
        monkeypatch.setenv(name, value)
    assert stores._needs_profile() is expected


class Hub(Files):
    """A repository and a bucket of the Hub, in place of huggingface_hub. Each write makes a commit
    with one more file; ``status`` is that of the answers to requests of ranges."""

    protocol = "hf"
    endpoint, token = "https://hub", "secret"
    commits: list[dict[str, bytes]] = []  # noqa: RUF012
    ranges: list[tuple[str, str]] = []  # noqa: RUF012
    status = 200

    def resolve_path(self, path: str) -> SimpleNamespace:
        if path.startswith("hf://buckets/"):
            return SimpleNamespace(bucket_id="user/data")
        name = path.removeprefix("hf://datasets/user/data/")
        return SimpleNamespace(
            repo_id="user/data", path_in_repo=name, repo_type="dataset", revision="main"
        )


class HubError(OSError):
    """An answer of the Hub that is no success."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{status} of the Hub\n\nmore about it")
        self.response = SimpleNamespace(status_code=status)


class RepoFile(SimpleNamespace):
    """A description of a file in a commit."""


class HubApi:
    """The interface to the newest commit and its files."""

    def __init__(self, endpoint: str, token: str) -> None:
        assert (endpoint, token) == (Hub.endpoint, Hub.token)

    def repo_info(self, repo_id: str, revision: str, repo_type: str) -> SimpleNamespace:
        assert (repo_id, revision, repo_type) == ("user/data", "main", "dataset")
        return SimpleNamespace(sha=str(len(Hub.commits) - 1))

    def get_paths_info(
        self, repo_id: str, path: str, revision: str, repo_type: str
    ) -> list[SimpleNamespace]:
        data = Hub.commits[int(revision)].get(path)
        if data is None:
            return []
        return [RepoFile(size=len(data), blob_id=hashlib.sha1(data).hexdigest())]


def request_range(
    method: str, url: str, headers: dict[str, str], timeout: float
) -> SimpleNamespace:
    commit, name = url.removeprefix("https://hub/dataset/user/data/").split("/")
    begin, end = map(int, headers["range"].removeprefix("bytes=").split("-"))
    Hub.ranges.append((commit, headers["range"]))
    assert (method, headers["token"]) == ("GET", Hub.token)
    return SimpleNamespace(
        status_code=Hub.status, content=Hub.commits[int(commit)][name][begin : end + 1]
    )


def require_success(answer: SimpleNamespace) -> None:
    if answer.status_code != 200:
        raise HubError(answer.status_code)


@pytest.fixture
def commit(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, bytes], None]:
    """Adds a file to the repository, by a commit."""
    module: Any = ModuleType("huggingface_hub")
    module.HfApi, module.hf_api = HubApi, SimpleNamespace(RepoFile=RepoFile)
    module.errors = SimpleNamespace(HfHubHTTPError=HubError)
    module.utils = SimpleNamespace(
        build_hf_headers=lambda token: {"token": token},
        http_backoff=request_range,
        hf_raise_for_status=require_success,
    )
    module.hf_hub_url = lambda repo_id, name, repo_type, revision, endpoint: (
        f"{endpoint}/{repo_type}/{repo_id}/{revision}/{name}"
    )
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    monkeypatch.setitem(KNOWN, "hf", Hub)
    monkeypatch.setattr(Hub, "commits", [{}])
    monkeypatch.setattr(Hub, "ranges", [])
    return lambda name, data: Hub.commits.append(Hub.commits[-1] | {name: data})


URL = "hf://datasets/user/data/a"


def test_an_object_of_the_hub_is_read_from_the_commit_that_was_opened(
    commit: Callable[[str, bytes], None],
) -> None:
    commit("a", b"old bytes")
    size, modified, version, tail = objects._objects.open(URL, 5)
    assert (size, modified, bytes(tail)) == (9, 0, b"bytes")
    commit("a", b"new bytes")
    assert objects._objects.read(URL, version, size, 0, 3) == b"old"
    assert objects._objects.read(URL, version, size, 3, 3) == b""
    assert objects.read(URL) == b"new bytes"
    assert Hub.ranges == [("1", "bytes=4-8"), ("1", "bytes=0-2"), ("2", "bytes=0-8")]


def test_a_process_that_did_not_open_a_version_reads_it_if_it_is_the_newest(
    commit: Callable[[str, bytes], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    commit("a", b"bytes")
    size, _, version, _ = objects._objects.open(URL, 0)
    for expected in (None, "was changed after it was opened"):
        isolate_stores(monkeypatch)
        if expected is None:
            assert objects._objects.read(URL, version, size, 0, 2) == b"by"
            commit("a", b"other")
            continue
        with pytest.raises(OSError, match=expected):
            objects._objects.read(URL, version, size, 0, 2)


def test_a_missing_object_of_the_hub_is_named(commit: Callable[[str, bytes], None]) -> None:
    with pytest.raises(FileNotFoundError, match=r"2\] no such file in .*: 'hf.*data/a'"):
        objects.read(URL)


@pytest.mark.parametrize(
    ("status", "number", "words"),
    [
        (401, errno.EACCES, "access is denied: 401 of the Hub"),
        (403, errno.EACCES, "access is denied: 403 of the Hub"),
        (404, errno.ENOENT, "404 of the Hub"),
        (500, errno.EIO, "500 of the Hub"),
    ],
)
def test_an_answer_of_the_hub_without_success_is_an_error_of_the_object(
    commit: Callable[[str, bytes], None],
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    number: int,
    words: str,
) -> None:
    commit("a", b"bytes")
    monkeypatch.setattr(Hub, "status", status)
    with pytest.raises(OSError) as found:
        objects.read(URL)
    assert (found.value.errno, found.value.strerror, found.value.filename) == (number, words, URL)


def test_a_bucket_of_the_hub_is_read_as_a_file_system(
    commit: Callable[[str, bytes], None],
) -> None:
    objects.write("hf://buckets/user/data/a", b"bytes")
    size, _, version, tail = objects._objects.open("hf://buckets/user/data/a", 2)
    assert (size, bytes(tail)) == (5, b"es")
    assert objects._objects.read("hf://buckets/user/data/a", version, size, 1, 3) == b"yt"
    assert Hub.ranges == []
