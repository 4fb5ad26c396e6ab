"""The states that a crash may leave, for hand-written recordings of calls."""

from __future__ import annotations

import os
from pathlib import Path

from tests.faults.crash_states import (
    Interpreter,
    State,
    apply_state,
    list_states,
    read_disk,
    write_disk,
)
from tests.faults.tracing import Record

#: Unused inode numbers.
_NEW, _OTHER = 10**15, 10**15 + 1


def record(name: str, path: str, inode: int, **facts: object) -> Record:
    fields = {"arguments": (0,) * 6, "offset": 0, "before": inode, "other": "", "data": b""}
    fields |= {"result": len(facts.get("data", b"")), **facts}  # type: ignore[arg-type]
    return Record(name=name, path=path, inode=inode, **fields)  # type: ignore[arg-type]


def create(path: str, inode: int) -> Record:
    flags = os.O_CREAT | os.O_WRONLY
    return record("open", path, inode, before=0, arguments=(0, 0, flags, 0, 0, 0))


def replace_file(root: Path, *, sync: bool) -> list[Record]:
    """Records the replacement of `a` by a new file."""
    aside, target = f"{root}/aside", f"{root}/a"
    old = (root / "a").stat().st_ino
    calls = [create(aside, _NEW), record("pwrite", aside, _NEW, data=b"new!")]
    calls += [record("fsync", aside, _NEW)] if sync else []
    return [*calls, record("rename", aside, _NEW, other=target, before=old)]


def list_contents(root: Path, records: list[Record], ends: bool = False) -> set[str]:
    """Lists names and contents of each state; `ends`: only of states after the last call."""
    disk, by_inode = read_disk(root)
    interpreter = Interpreter(root, disk, by_inode)
    events = list(interpreter.interpret(records))
    found = set()
    for state in list_states(events):
        if not ends or state.at == len(events):
            after = apply_state(disk, interpreter.created, events, state)
            names = sorted(after.names(0).items())
            found.add(" ".join(f"{name}={after.bytes_of(i).decode()}" for name, i in names))
    return found


def old_file(tmp_path: Path) -> Path:
    (tmp_path / "a").write_text("old")
    return tmp_path


def test_a_renamed_file_whose_bytes_were_synchronised_is_whole_or_the_old_one(tmp_path):
    root = old_file(tmp_path)
    found = list_contents(root, replace_file(root, sync=True))
    assert {text.split()[0] for text in found} == {"a=old", "a=new!"}


def test_a_renamed_file_whose_bytes_were_not_synchronised_may_be_empty_or_torn(tmp_path):
    root = old_file(tmp_path)
    found = list_contents(root, replace_file(root, sync=False))
    assert {"a=", "a=ne", "a=old aside=new!", "a=new!"} <= found


def test_a_name_stays_only_when_its_directory_is_synchronised(tmp_path):
    root = old_file(tmp_path)
    calls = replace_file(root, sync=True)
    assert "a=old" in list_contents(root, calls, ends=True)
    synced = [*calls, record("fsync", str(root), root.stat().st_ino)]
    assert list_contents(root, synced, ends=True) == {"a=new!"}


def test_a_nameless_file_gets_its_name_with_its_bytes(tmp_path):
    opened = record(
        "open", str(tmp_path), _NEW, before=1, arguments=(0, 0, os.O_TMPFILE | 1, 0, 0, 0)
    )
    calls = [
        opened,
        record("pwrite", f"{tmp_path}/#{_NEW} (deleted)", _NEW, data=b"x"),
        record("link", f"{tmp_path}/#{_NEW} (deleted)", 0, other=f"{tmp_path}/b", before=0),
    ]
    assert list_contents(tmp_path, calls) == {"", "b=x", "b="}


def test_a_file_in_a_renamed_directory_moves_with_it(tmp_path):
    calls = [
        record("mkdir", f"{tmp_path}/d", _NEW, before=0),
        create(f"{tmp_path}/d/x", _OTHER),
        record("rename", f"{tmp_path}/d", _NEW, other=f"{tmp_path}/e", before=0),
        record("pwrite", f"{tmp_path}/e/x", _OTHER, data=b"1"),
    ]
    disk, by_inode = read_disk(tmp_path)
    interpreter = Interpreter(tmp_path, disk, by_inode)
    events = list(interpreter.interpret(calls))
    every = State(frozenset(range(len(events))), len(events))
    write_disk(apply_state(disk, interpreter.created, events, every), tmp_path / "after")
    assert (tmp_path / "after" / "e" / "x").read_text() == "1"
    assert not (tmp_path / "after" / "d").exists()


def test_of_files_written_later_the_time_is_later(tmp_path):
    root = old_file(tmp_path)
    disk, by_inode = read_disk(root)
    interpreter = Interpreter(root, disk, by_inode)
    events = list(interpreter.interpret(replace_file(root, sync=False)[:-1]))
    write_disk(
        apply_state(disk, interpreter.created, events, State(frozenset({0, 1}), 2)), root / "after"
    )
    times = [(root / "after" / name).stat().st_mtime_ns for name in ("a", "aside")]
    assert times[0] < times[1]
