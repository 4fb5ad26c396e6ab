"""The cache of decoded groups: one thread decodes a group, and memory is bounded."""

from __future__ import annotations

import dis
import itertools
import random
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pario.errors import ParioError
from pario.records import Dataset
from pario.records.foreign import Decoded
from pario.records.group_loader import GroupedFiles
from pario.records.groups import GroupedFile
from pario.records.kept import Kept
from tests.support.waiting import PATIENCE


@pytest.fixture
def several(tmp_path: Path) -> list[Dataset]:
    """Three files of four groups of five records; the memory suffices for one group."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import pyarrow.parquet

    paths = [tmp_path / f"{number}.parquet" for number in range(3)]
    for path in paths:
        pyarrow.parquet.write_table(pyarrow.table({"id": list(range(20))}), path, row_group_size=5)
    return [Dataset(path, memory=1) for path in paths]


def in_memory(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns a list to which each later decoding appends the number of groups in memory."""
    counts: list[int] = []
    alive: weakref.WeakSet[Any] = weakref.WeakSet()
    decode = GroupedFile.decode

    def count_decoded(self: GroupedFile, group: int) -> Decoded:
        memory, offsets = decode(self, group)
        memory = memory.copy().view(_Counted)
        alive.add(memory)
        counts.append(len(alive))
        return Decoded(memory, offsets)

    monkeypatch.setattr(GroupedFile, "decode", count_decoded)
    return counts


class _Counted(np.ndarray):  # type: ignore[type-arg]
    __hash__ = object.__hash__  # type: ignore[assignment]


def of_bytes(size: int) -> Decoded:
    return Decoded(np.zeros(size, dtype=np.uint8), np.array([0, size], dtype=np.int64))


def fail_if_decoded(group: int) -> Decoded:
    raise AssertionError(f"group {group} is decoded again")


class TestMemory:
    def test_a_list_of_records_keeps_no_finished_group(
        self, several: list[Dataset], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        counts = in_memory(monkeypatch)
        assert len(several[0][[0, 5, 11, 19, 15, 1]]) == 6
        assert len(counts) == 4 and max(counts) <= 2

    def test_many_files_together_keep_as_much_as_one(
        self, several: list[Dataset], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        counts = in_memory(monkeypatch)
        files = GroupedFiles([one.file for one in several])  # type: ignore[misc]
        for group in range(files.count):
            files.decode(group, keep=True)
        assert len(counts) == 12 and max(counts) <= 2


class TestKept:
    def test_a_failed_decoding_keeps_a_group_that_another_thread_has_decoded_since(self) -> None:
        kept, again = Kept(0), of_bytes(8)

        def slowly(group: int) -> Decoded:
            kept.get(2, lambda _: of_bytes(1))  # evicts group 1, which is not decoded yet
            assert kept.get(group, lambda _: again) is again
            raise ParioError("no")

        with pytest.raises(ParioError, match="no"):
            kept.get(1, slowly)
        assert kept.get(1, fail_if_decoded) is again

    def test_memory_is_counted_in_any_order_of_threads(self) -> None:
        kept = Kept(40_000)
        with ThreadPoolExecutor(8) as pool:
            for got in pool.map(
                lambda number: kept.get(number * 7 % 31, lambda group: of_bytes(group * 100)),
                range(4000),
            ):
                assert got.memory.size < 3100
        assert_counted(kept, 40_000)

    def test_an_interrupted_thread_leaves_the_group_to_a_waiting_one(self) -> None:
        kept, begun, asked = Kept(40_000), threading.Event(), threading.Event()

        def raise_interrupt(group: int) -> Decoded:
            begun.set()
            assert asked.wait(PATIENCE)
            raise KeyboardInterrupt

        def wait() -> Decoded:
            assert begun.wait(PATIENCE)
            threading.Timer(0.1, asked.set).start()
            return kept.get(1, lambda _: of_bytes(8))

        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(wait)
            with pytest.raises(KeyboardInterrupt):
                kept.get(1, raise_interrupt)
            assert waiting.result(PATIENCE) is kept.get(1, fail_if_decoded)
        assert_counted(kept, 40_000)

    def test_an_error_is_raised_in_waiting_threads_and_the_next_request_tries_again(self) -> None:
        kept, begun, asked = Kept(0), threading.Event(), threading.Event()
        slow = kept.get  # a waiting thread has requested the group, or will try itself

        def fails(group: int) -> Decoded:
            begun.set()
            assert asked.wait(PATIENCE)
            raise ParioError("no")

        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(slow, 1, fails)
            assert begun.wait(PATIENCE)
            second = pool.submit(slow, 1, fails)
            asked.set()
            for one in (first, second):
                with pytest.raises(ParioError, match="no"):
                    one.result(PATIENCE)
        assert kept.get(1, lambda _: of_bytes(8)).memory.size == 8

    @pytest.mark.parametrize("seed", range(3))
    def test_interrupts_anywhere_leave_no_lock_and_correct_memory_counts(self, seed: int) -> None:
        kept, steps = Kept(5000), random.Random(seed)

        def interrupt(frame: Any, event: str, argument: Any) -> Any:
            if frame.f_globals.get("__name__") == "pario.records.kept":
                frame.f_trace_opcodes = True
                if event == "opcode" and steps.random() < 0.003 and is_checked(frame):
                    raise KeyboardInterrupt
            return interrupt

        before, count = sys.gettrace(), 0
        for number in range(400):
            sys.settrace(interrupt)
            try:
                kept.get(number % 5, lambda group: of_bytes(group * 500))
            except KeyboardInterrupt:
                count += 1
            finally:
                sys.settrace(before)
        assert count > 20
        for group in range(5):
            assert kept.get(group, lambda group: of_bytes(group * 500)).memory.size == group * 500
        assert_counted(kept, 5000)


def is_checked(frame: Any) -> bool:
    """True if Python checks for signals before the next instruction: after calls and at the start
    of functions."""
    done = {
        each.offset: before.opname
        for before, each in itertools.pairwise(
            dis.get_instructions(frame.f_code, show_caches=False)
        )
    }
    return done.get(frame.f_lasti, "RESUME").startswith(("CALL", "RESUME"))


def assert_counted(kept: Kept, most: int) -> None:
    held = [slot.decoded for slot in kept._held.groups.values() if slot.decoded]
    assert (
        kept._held.bytes
        == sum(one.memory.nbytes + one.offsets.nbytes + 1000 for one in held)
        <= most
    )
