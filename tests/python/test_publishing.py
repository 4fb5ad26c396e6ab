"""Publication of complete files: links in the place of a temporary file, and the state after an
error."""

import errno
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from pario import publishing
from pario.checkpoint import Writer, block, load, write_safetensors
from pario.checkpoint.header import find
from pario.checkpoint.manifest import ManifestFile
from pario.checkpoint.merge import merge as merge_files
from pario.errors import ParioError
from pario.move import merge
from pario.move.archive.subdirs import distribute
from pario.move.staging import Staged
from pario.move.verified_copy import copy_verified
from pario.progress import silent
from pario.publishing import identity_of, keep_file, replace_if_unchanged, write_text
from pario.ranks import OneRank
from pario.see.launch import directory as logs
from pario.see.report import picture
from tests.python.support import threads

#: The content of a user's file to which links in the place of temporary files point.
PRECIOUS = b"precious"


def write_tensors(source, target):
    return lambda: write_safetensors(target / "model.safetensors", {"w": np.arange(3.0)})


def concatenate(source, target):
    (source / "a").write_bytes(b"a")
    return lambda: merge.concatenate([source / "a"], target / "whole", 1, silent)


def assemble(source, target):
    np.save(source / "a.npy", np.arange(3.0))
    mosaic = merge.Mosaic.of([merge.Block.of_npy(source / "a.npy")], (1,), False)
    return lambda: merge.assemble(mosaic, target / "whole.h5", "data", 1, silent)


def merge_checkpoint(source, target):
    def save(ranks):
        with Writer(ranks, source, durable=False, files="rank") as writer:
            writer.save(1, {"x": block(np.arange(4.0), (8,), (4 * ranks.rank,))})

    threads.run(2, save)
    return lambda: merge_files(OneRank(), lambda: find(source)[0], target / "one.h5", threads=1)


def copy_to_stage(source, target):
    (source / "a").write_bytes(b"a")
    return lambda: copy_verified(source / "a", target / "a", 1)


def note_staging(source, target):
    return lambda: Staged.make(target).write_note()


def note_spreading(source, target):
    (target / "a").write_bytes(b"a")
    return lambda: distribute(target, 2, "even", silent)


def note_job(source, target):
    return lambda: logs._write(target / "job.json", {})


def list_checkpoints(source, target):
    def write():
        with ManifestFile(target, durable=False).replacing([]):
            pass

    return write


def draw_picture(source, target):
    return lambda: picture.write(target / "plot.svg", "plot", "<svg/>", "")


PUBLICATIONS = [
    draw_picture,
    list_checkpoints,
    write_tensors,
    concatenate,
    assemble,
    merge_checkpoint,
    copy_to_stage,
    note_staging,
    note_spreading,
    note_job,
]
_opened: list[list[Path]] = []


def note_opened(event, arguments):
    if (
        event in ("open", "os.mkdir")
        and _opened
        and isinstance(arguments[0], str | bytes | os.PathLike)
    ):
        _opened[-1].append(Path(os.fsdecode(arguments[0])))


sys.addaudithook(note_opened)


@pytest.fixture(params=PUBLICATIONS, ids=lambda one: one.__name__)
def publish(request, tmp_path):
    """Returns a function that publishes a file in a directory."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    return request.param(source, target)


def temporary_names(publish, target):
    """Returns the names of the temporary files of a publication, which must leave the other files
    of the directory as they were."""
    before = {path: path.read_bytes() for path in target.iterdir()}
    _opened.append([])
    try:
        publish()
    finally:
        opened = _opened.pop()
    found = {path.name for path in opened if path.parent == target and not path.exists()} - {
        path.name for path in before
    }
    shutil.rmtree(target)
    target.mkdir()
    for path, content in before.items():
        path.write_bytes(content)
    return found


@pytest.mark.parametrize("kind", ["file", "directory", "dangling"])
def test_a_link_in_place_of_a_temporary_file_is_removed_and_not_followed(publish, kind, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "directory").mkdir(parents=True)
    (elsewhere / "file").write_bytes(PRECIOUS)
    names = temporary_names(publish, tmp_path / "target")
    assert names
    for name in names:
        (tmp_path / "target" / name).symlink_to(elsewhere / kind)
    publish()
    assert sorted(path.name for path in elsewhere.iterdir()) == ["directory", "file"]
    assert (elsewhere / "file").read_bytes() == PRECIOUS and not list(
        (elsewhere / "directory").iterdir()
    )
    assert not [name for name in names if os.path.lexists(tmp_path / "target" / name)]


def test_an_error_leaves_no_file_and_names_the_file(publish, tmp_path, monkeypatch, capsys):
    target = tmp_path / "target"
    before = set(target.iterdir())

    def fail(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for holder, name in (
        (Path, "replace"),
        (Path, "rename"),
        (os, "replace"),
        (os, "rename"),
        (os, "link"),
        (publishing, "_rename"),
    ):
        monkeypatch.setattr(holder, name, fail)
    said = ""
    try:
        publish()
    except (OSError, ParioError) as error:
        said = str(error)
    monkeypatch.undo()
    said += capsys.readouterr().err
    assert str(target) in said and "No space left" in said
    assert set(target.iterdir()) == before


@pytest.mark.parametrize("kind", ["file", "directory", "dangling"])
@pytest.mark.parametrize("when", ["before the Writer", "before the save", "before the next save"])
@pytest.mark.parametrize("files", [1, 2], ids=["one file", "parts"])
@pytest.mark.system
def test_a_link_in_place_of_a_checkpoints_temporary_file_is_removed_and_not_followed(
    tmp_path, files, when, kind
):
    elsewhere, directory = tmp_path / "elsewhere", tmp_path / "ckpt"
    (elsewhere / "directory").mkdir(parents=True)
    (elsewhere / "file").write_bytes(PRECIOUS)
    directory.mkdir()

    def put_links(step):
        name = f"step-{step:08d}" + (".h5" if files == 1 else "")
        for ending in (".part", ".old", ".gone", ".old.gone"):
            (directory / f"{name}{ending}").symlink_to(elsewhere / kind)

    if when == "before the Writer":
        put_links(1)
    with Writer(None, directory, durable=False, files=files) as writer:
        for step in (1, 2):
            if (step, when) in ((1, "before the save"), (2, "before the next save")):
                put_links(step)
            writer.save(step, {"x": np.arange(5)})
        writer.save(2, {"x": np.arange(5)})
    assert sorted(path.name for path in elsewhere.iterdir()) == ["directory", "file"]
    assert (elsewhere / "file").read_bytes() == PRECIOUS and not list(
        (elsewhere / "directory").iterdir()
    )
    assert (
        load(None, directory).step == 2
        and (load(None, directory, step=1)["x"] == np.arange(5)).all()
    )
    assert not [path for path in directory.iterdir() if path.name.endswith(".part")]


def test_a_new_directory_gets_its_name_at_the_end(tmp_path):
    target = tmp_path / "tree"
    stale = publishing.part_path(target)
    stale.mkdir()
    (stale / "of a killed process").touch()
    with publishing.new_directory(target) as part:
        assert (part.parent, target.exists()) == (tmp_path, False)
        (part / "file").touch()
    assert [path.name for path in tmp_path.rglob("*")] == ["tree", "file"]


def test_the_first_of_two_makers_of_a_directory_publishes_it(tmp_path):
    target = tmp_path / "tree"
    with (
        pytest.raises(FileExistsError, match="tree"),
        publishing.new_directory(target) as late,
    ):
        with publishing.new_directory(target) as first:
            (first / "first").touch()
            assert late.exists()  # it is being made, so it is not stale
        (late / "late").touch()
    assert [path.name for path in tmp_path.rglob("*")] == ["tree", "first"]


def test_a_new_directory_is_removed_after_an_error(tmp_path):
    with pytest.raises(ValueError, match="wrong"), publishing.new_directory(tmp_path / "a/b"):
        raise ValueError("wrong")
    assert list((tmp_path / "a").iterdir()) == []


def test_a_directory_that_cannot_be_made_is_an_error_of_its_file(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ParioError, match=r"cannot write .*/file/deep/kept: Not a directory"):
        keep_file(tmp_path / "file" / "deep" / "kept", "text")


def test_text_for_a_pipe_is_written_into_it(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_text(tmp_path / "pipe", "é")
        assert os.read(reader, 10) == "é".encode()
    finally:
        os.close(reader)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_file_replaces_an_unchanged_one_without_flags_of_renames(tmp_path, monkeypatch):
    """As on file systems that know no renameat2."""
    monkeypatch.setattr(publishing.ctypes, "CDLL", lambda *_, **__: object())
    (tmp_path / "part").write_text("new")
    (tmp_path / "target").write_text("old")
    before = identity_of(tmp_path / "target")
    assert not replace_if_unchanged(tmp_path / "part", tmp_path / "target", None)
    assert (tmp_path / "target").read_text() == "old"
    assert replace_if_unchanged(tmp_path / "part", tmp_path / "target", before)
    assert (tmp_path / "target").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_a_file_whose_part_is_gone_is_not_published(tmp_path):
    (tmp_path / "target").write_text("old")
    with pytest.raises(FileNotFoundError):
        replace_if_unchanged(
            tmp_path / "part", tmp_path / "target", identity_of(tmp_path / "target")
        )
    assert (tmp_path / "target").read_text() == "old"


def test_a_directory_that_cannot_be_flushed_is_an_error(tmp_path, monkeypatch):
    def fail(directory):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(publishing, "sync_directory", fail)
    target = tmp_path / "note"
    with pytest.raises(ParioError, match=f"cannot write {target}: Input/output error"):
        keep_file(target, "text", durable=True)
    keep_file(target, "text")  # not durable: not flushed
