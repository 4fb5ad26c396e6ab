"""Checkpoints in an object store: complete or not listed, loaded by ranks of several nodes."""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from uuid import uuid4

import numpy as np
import pytest

from pario import checkpoint, objects
from pario.checkpoint import CheckpointError, Keep, Writer, remote
from pario.checkpoint.convert import convert
from pario.checkpoint.geometry import whole
from pario.checkpoint.manifest import Manifest
from pario.checkpoint.remote import RemoteStore
from pario.cli import main
from pario.objects import stores
from pario.ranks import node_name
from tests.python.support.stores import Proxy, get, isolate_stores, put, run_s3_server
from tests.python.support.threads import run, run_on_nodes
from tests.support.commands import start_command
from tests.support.waiting import wait_until

MISSING = [name for name in ("obstore", "moto", "flask_cors") if find_spec(name) is None]
pytestmark = [
    pytest.mark.system,
    pytest.mark.xdist_group("object stores"),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]

FULL = np.arange(300_000.0).reshape(500, 600)


@pytest.fixture(scope="module")
def running() -> Iterator[Proxy]:
    with run_s3_server(latency=0) as proxy:
        yield proxy


@pytest.fixture
def s3(running: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proxy:
    """A server of S3. Stages and copies are in a directory of the test."""
    isolate_stores(monkeypatch)
    (tmp_path / "local").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "local"))
    running.clear()
    return running


@pytest.fixture
def url() -> str:
    """A place in the store for each run of a test."""
    return f"s3://bucket/{uuid4().hex}"


def local_files(tmp_path: Path) -> list[str]:
    return sorted(str(path.relative_to(tmp_path)) for path in (tmp_path / "local").rglob("*"))


def save(url: str, steps: range, **options: Any) -> None:
    with Writer(None, url, **options) as writer:
        for step in steps:
            name = writer.save(step, {"T": FULL + step, "t": 0.5 * step}, {"dt": 0.1})
            assert str(name) == f"step-{step:08d}.h5"


def test_checkpoints_are_loaded_and_leave_no_local_files(
    s3: Proxy, url: str, tmp_path: Path
) -> None:
    save(url, range(1, 4))
    for step in (None, 2):
        state = checkpoint.load(None, url, step=step)
        assert state.step == (step or 3) and state.attrs == {"dt": 0.1}
        assert (state["T"] == FULL + state.step).all()
        del state
    assert local_files(tmp_path) == []


def test_a_later_writer_continues_the_generations_and_removes_older_ones(
    s3: Proxy, url: str
) -> None:
    save(url, range(5, 7))
    save(url, range(1, 3), keep=2)  # the program went back
    assert checkpoint.load(None, url).step == 2
    for step, is_there in ((5, False), (6, False), (1, True), (2, True)):
        address = f"{s3.address}{url.removeprefix('s3:/')}/step-{step:08d}.h5"
        if is_there:
            assert len(get(address)) > FULL.nbytes
        else:
            with pytest.raises(HTTPError, match="404"):
                get(address)


def test_a_writer_on_another_host_is_told_of(s3: Proxy, url: str, tmp_path: Path) -> None:
    one, other = (Writer(None, url, stage=tmp_path / name) for name in ("a", "b"))
    with one, other:
        one.save(1, {"t": 1})
        with pytest.raises(CheckpointError, match="another Writer has saved"):
            other.save(2, {"t": 2})
        one.save(3, {"t": 3})
    assert checkpoint.load(None, url).step == 3
    with pytest.raises(CheckpointError, match="no complete checkpoint of step 2"):
        checkpoint.load(None, url, step=2)


def test_a_manifest_that_could_not_be_written_is_of_the_same_writer(
    s3: Proxy, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = objects.update

    def update_and_fail(*arguments: Any) -> None:
        update(*arguments)
        raise OSError(errno.EIO, "no answer")

    with Writer(None, url) as writer:
        for effect in (update_and_fail, lambda *_: update_and_fail(f"{url}/other", lambda _: b"")):
            with monkeypatch.context() as patch, pytest.raises(CheckpointError, match="no answer"):
                patch.setattr(objects, "update", effect)
                writer.save(1, {"t": 1})
            writer.save(2, {"t": 2})
    assert checkpoint.load(None, url).step == 2


def save_between(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: range
) -> list[str]:
    """Saves by one Writer, while another one saves a step just before the manifest of the last is
    written; returns the errors."""
    errors = []
    with Writer(None, url, stage=tmp_path / "a") as one:
        for step in steps[:-1]:
            one.save(step, {"t": step})
        with Writer(None, url, stage=tmp_path / "b") as other:
            encode = remote.encode_manifest

            def save_before(manifest: Manifest) -> bytes:
                monkeypatch.setattr(remote, "encode_manifest", encode)
                other.save(100, {"t": 100})
                return encode(manifest)

            monkeypatch.setattr(remote, "encode_manifest", save_before)
            try:
                one.save(steps[-1], {"t": steps[-1]})
            except CheckpointError as error:
                errors.append(str(error))
    return errors


@pytest.mark.parametrize("saved", [1, 2], ids=["none before", "one before"])
def test_of_two_writers_the_one_that_is_late_loses_nothing(
    s3: Proxy, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved: int
) -> None:
    errors = save_between(url, tmp_path, monkeypatch, range(saved))
    assert "another Writer has saved" in "".join(errors)
    assert checkpoint.load(None, url, step=100)["t"] == 100


def test_a_store_without_conditional_requests_is_written(
    s3: Proxy, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = "<Error><Code>NotImplemented</Code></Error>"
    monkeypatch.setattr(stores, "_RETRIES", {**stores._RETRIES, "max_retries": 0})
    s3.inject(
        {"kind": "none", "path": "MANIFEST"},
        {"kind": "none", "path": "MANIFEST"},
        {"kind": "none", "path": "MANIFEST"},
        {"kind": "status", "status": 501, "body": refusal, "path": "MANIFEST"},
    )
    save(url, range(1, 3))
    manifests = [one for one in s3.requests() if one.path.endswith("/MANIFEST")]
    assert [one.status for one in manifests if one.method == "PUT"] == [501, 200, 200]
    assert checkpoint.load(None, url).step == 2


def test_a_checkpoint_that_is_removed_before_it_is_copied_is_replaced_by_the_newest(
    s3: Proxy, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Writer(None, url, keep=Keep(last=1, every=2)) as writer:
        for step in (2, 3):
            writer.save(step, {"t": step})
        download, later = objects.download, [5]

        def publish_before(*arguments: Any) -> None:
            if later:
                writer.save(later[0], {"t": later.pop()})
            download(*arguments)

        monkeypatch.setattr(objects, "download", publish_before)
        state = checkpoint.load(None, url)
    assert state.step == 5 and state.skipped == []


def test_an_error_of_the_store_loads_no_older_checkpoint(s3: Proxy, url: str) -> None:
    save(url, range(1, 3))
    s3.inject({"kind": "status", "status": 403, "path": "step-00000002.h5"})
    with pytest.raises(CheckpointError, match=r"step-00000002\.h5: access is denied"):
        checkpoint.load(None, url)
    assert checkpoint.load(None, url).step == 2


def test_ranks_save_one_object_and_others_load_it_on_two_nodes(
    s3: Proxy, url: str, tmp_path: Path
) -> None:
    def program(ranks: Any) -> None:
        box = checkpoint.divide(FULL.shape, ranks.size, ranks.rank)
        part = checkpoint.block(FULL[box.within(whole(FULL.shape))], FULL.shape, box.begin)
        with Writer(ranks, url) as writer:
            writer.save_async(1, {"T": part}).result()

    def restart(ranks: Any) -> bool:
        state = checkpoint.load(ranks, url)
        begin, shape = state.mine("T")
        box = checkpoint.divide(FULL.shape, ranks.size, ranks.rank)
        equal = state.read("T", begin, shape) == FULL[box.within(whole(FULL.shape))]
        return bool(equal.all())

    assert run(3, program) == [None] * 3
    assert run_on_nodes([0, 0, 1, 1], restart) == [True] * 4
    assert local_files(tmp_path) == []


def test_a_failed_upload_leaves_the_earlier_checkpoint(
    s3: Proxy, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the object exists, but is not listed."""

    def refuse(name: str, _: objects.Change) -> None:
        raise PermissionError(errno.EACCES, f"{name}: access is denied")

    save(url, range(1, 2))
    s3.inject({"kind": "status", "status": 403, "path": "step-00000002"})
    with pytest.raises(CheckpointError, match=f"{url}/step-00000002.h5: access is denied"):
        save(url, range(2, 3))
    assert checkpoint.load(None, url).step == 1
    monkeypatch.setattr(objects, "update", refuse)
    with pytest.raises(CheckpointError, match=f"{url}/MANIFEST: access is denied"):
        save(url, range(2, 3))
    assert get(f"{s3.address}{url.removeprefix('s3:/')}/step-00000002.h5")
    assert checkpoint.load(None, url).step == 1
    assert local_files(tmp_path) == []


PROGRAM = """
import sys
import numpy as np
from pario.checkpoint import Writer

with Writer(None, sys.argv[1], stage=sys.argv[2]) as writer:
    for step in (1, 2):
        writer.save(step, {"T": np.arange(9.0) + step})
"""


def test_a_killed_upload_leaves_the_earlier_checkpoint(s3: Proxy, url: str, tmp_path: Path) -> None:
    """The next Writer removes its file."""
    stage = tmp_path / "stage"
    s3.inject({"kind": "hold", "path": "step-00000002"})
    with start_command([sys.executable, "-c", PROGRAM, url, stage]) as running:
        wait_until(lambda: any(one.held for one in s3.requests()), "the upload begins")
        running.kill()
    assert checkpoint.load(None, url).step == 1
    s3.clear()  # its bytes may arrive now, but are not listed
    assert checkpoint.load(None, url)["T"].tolist() == (np.arange(9.0) + 1).tolist()
    assert [path.name for path in stage.glob("*/*.part")] == ["step-00000002.h5.part"]
    with Writer(None, url, stage=stage) as writer:
        assert list(stage.glob("*/*.part")) == []
        writer.save(3, {"T": 0.0})
    assert list(stage.iterdir()) == [] and checkpoint.load(None, url).step == 3


def test_a_damaged_object_is_named_and_the_older_one_is_loaded(
    s3: Proxy, url: str, tmp_path: Path
) -> None:
    save(url, range(1, 3))
    address = f"{s3.address}{url.removeprefix('s3:/')}/step-00000002.h5"
    content = get(address)
    put(address, content[:5000])
    with pytest.warns(UserWarning, match=rf"^{url}/step-00000002\.h5.*; it is skipped"):
        state = checkpoint.load(None, url)
    assert state.step == 1 and state.name == f"{url}/step-00000001.h5"
    with pytest.raises(CheckpointError, match=f"^{state.name} was not saved by save_state_dict"):
        checkpoint.load_state_dict(None, state.name)
    at = content.index((FULL + 2)[100].tobytes())
    put(address, content[:at] + b"\1" + content[at + 1 :])
    of_array = rf"^{url}/step-00000002\.h5: array 'T'.*is not what was saved"
    with pytest.raises(CheckpointError, match=of_array):
        checkpoint.load(None, f"{url}/step-00000002.h5")["T"]
    with pytest.raises(CheckpointError, match=of_array):
        convert(url, tmp_path / "copy")


def test_a_damaged_compressed_object_is_named(s3: Proxy, url: str) -> None:
    save(url, range(1, 2), compress="zstd")
    address = f"{s3.address}{url.removeprefix('s3:/')}/step-00000001.h5"
    content = bytearray(get(address))
    at = content.index(b"\x28\xb5\x2f\xfd") + 100  # in a frame of zstd
    content[at : at + 8] = bytes(8)
    put(address, bytes(content))
    with pytest.raises(CheckpointError, match=rf"^{url}/step-00000001\.h5: array 'T'"):
        checkpoint.load(None, url)["T"]


def test_a_place_without_checkpoints_is_named(s3: Proxy, url: str) -> None:
    with pytest.raises(CheckpointError, match=f"{url}: no complete checkpoint"):
        checkpoint.load(None, url)
    put(f"{s3.address}{url.removeprefix('s3:/')}/MANIFEST", b"nothing")
    with pytest.raises(CheckpointError, match=f"{url}/MANIFEST: its checksum does not match"):
        checkpoint.load(None, url)


def test_a_nested_state_is_restored_by_both_apis(s3: Proxy, url: str) -> None:
    torch = pytest.importorskip("torch")
    dcp = pytest.importorskip("torch.distributed.checkpoint")
    from pario.checkpoint.dcp import Reader
    from pario.checkpoint.dcp import Writer as Storage

    state = {"w": torch.arange(6.0).reshape(2, 3), "epoch": 3}
    dcp.save(state, storage_writer=Storage(f"{url}/step-7", no_dist=True), no_dist=True)
    dcp.save(state, storage_writer=Storage(url, no_dist=True), no_dist=True)
    for place, step in ((url, 8), (f"{url}/step-7", 7)):
        reader, found = Reader(place, no_dist=True), {"w": torch.zeros(2, 3), "epoch": 0}
        dcp.load(found, storage_reader=reader, no_dist=True)
        assert torch.equal(found["w"], state["w"]) and found["epoch"] == 3
        assert checkpoint.load_state_dict(None, url, step=step)["epoch"] == 3


def test_commands_read_and_write_checkpoints_in_a_store(
    s3: Proxy, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Writer(None, tmp_path / "run", durable=False) as writer:
        checkpoint.save_state_dict(writer, 1, {"w": FULL, "n": 3})
    assert main(["checkpoint", "convert", str(tmp_path / "run"), url]) == 0
    assert main(["checkpoint", "ls", url]) == 0
    row = capsys.readouterr().out.splitlines()[-1]
    assert row.split()[0] == "1" and row.endswith("step-00000001.h5") and "2.4" in row
    assert main(["checkpoint", "verify", url, "--all"]) == 0
    assert main(["checkpoint", "convert", url, str(tmp_path / "w.safetensors")]) == 0
    assert (checkpoint.read_safetensors(tmp_path / "w.safetensors")["w"] == FULL).all()
    assert main(["checkpoint", "convert", url, url, "--to", "dcp"]) == 2
    assert "to dcp; expected to pario, or a local path" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"files": "rank"}, "files='rank'; expected files=1 in an object store"),
        ({"keep": Keep(best=2, metric="loss")}, "best=2; expected last and every"),
    ],
)
def test_options_of_local_directories_are_refused_by_name(
    s3: Proxy, url: str, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(CheckpointError, match=f"{url}: {text}"):
        Writer(None, url, **options)


def test_ranks_that_see_other_stages_are_refused(tmp_path: Path) -> None:
    (tmp_path / "stage").mkdir()
    store = RemoteStore("s3://bucket/run", tmp_path / "stage")
    store.require_mark(store.mark())
    with pytest.raises(CheckpointError, match="stage is another directory than that of rank 0"):
        store.require_mark("of another directory")


def test_copies_of_killed_processes_are_removed(s3: Proxy, url: str, tmp_path: Path) -> None:
    """Copies of running processes and of other nodes stay."""
    save(url, range(1, 2))
    for name, node in (("killed", node_name()), ("running", node_name()), ("other", "elsewhere")):
        place = tmp_path / "local" / f"pario-checkpoint-{name}"
        place.mkdir()
        (place / "node").write_text(node)
    locked = os.open(tmp_path / "local" / "pario-checkpoint-running", os.O_RDONLY)
    fcntl.flock(locked, fcntl.LOCK_EX)
    assert checkpoint.load(None, url).step == 1
    os.close(locked)
    left = {path.name.removeprefix("pario-checkpoint-") for path in (tmp_path / "local").iterdir()}
    assert left == {"running", "other"}
