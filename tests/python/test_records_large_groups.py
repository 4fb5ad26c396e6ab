"""Row groups that are larger than the memory of a Dataset are read in pieces."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pario.records import Dataset
from tests.python.support.decoding import decoding


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A row group of 100 rows of 1 MB, each with pages of its own."""
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [bytes([number]) * 1_000_000 for number in range(100)]
    how: dict[str, Any] = {"compression": "none", "use_dictionary": False, "write_batch_size": 1}
    parquet.write_table(
        pyarrow.table({"n": range(100), "data": rows}), tmp_path / "large.parquet", **how
    )
    return tmp_path / "large.parquet"


def count_bytes_read(work: Callable[[], object]) -> int:
    """The bytes that this process reads from files while it works."""

    def count() -> int:
        return int(Path("/proc/self/io").read_text().split()[1])

    before = count()
    work()
    return count() - before


@pytest.mark.system
def test_a_few_rows_of_a_large_group_are_read_without_the_rows_behind_them(large: Path) -> None:
    dataset = Dataset(large, column="data", memory=1 << 20)
    found: list[bytes] = []
    # In pieces of 16 rows.
    assert count_bytes_read(lambda: found.extend(map(bytes, dataset[[30, 2]]))) < 50_000_000
    assert [record[0] for record in found] == [30, 2] and set(map(len, found)) == {1_000_000}
    assert [record[0] for record in dataset[[99, 0]]] == [99, 0]
    whole = Dataset(large, column="data")
    assert count_bytes_read(lambda: whole[[30, 2]]) > 100_000_000


@pytest.mark.system
def test_rows_of_a_large_group_in_ascending_order_are_decoded_once(large: Path) -> None:
    dataset = Dataset(large, column="data", memory=1 << 20)
    found: list[int] = []
    wanted = [7, 8, 3, 50, 60, 49, 99]  # 3 and 49 are in the pieces of 16 rows before
    for copied in (dataset, pickle.loads(pickle.dumps(dataset))):
        rows = (copied[row][0] for row in wanted)
        assert count_bytes_read(partial(found.extend, rows)) < 110_000_000
    assert found == 2 * wanted
    with ThreadPoolExecutor(4) as team:
        assert [one[0] for one in team.map(dataset.__getitem__, range(100))] == list(range(100))


@pytest.mark.system
def test_a_large_group_that_is_read_back_and_forth_is_kept(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, decoded = Dataset(large, column="data", memory=1 << 20), decoding(monkeypatch)
    for whole, numbers in (([], (99, 0, 99)), ([], (0, 99)), ([0], (0, 50, 7, 99))):
        assert [dataset[number][0] for number in numbers] == list(numbers)
        assert decoded == whole


def test_a_forked_child_decodes_a_large_group_anew(large: Path) -> None:
    dataset = Dataset(large, column="data", memory=1 << 20)
    assert dataset[50][0] == 50
    child = os.fork()
    if child == 0:
        found = 0
        try:
            found = dataset[60][0]
        finally:
            os._exit(found)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 60
    assert dataset[61][0] == 61


def test_a_large_group_of_a_changed_file_is_an_error(large: Path) -> None:
    dataset = Dataset(large, column="data", memory=1 << 20)
    assert dataset[50][0] == 50
    os.utime(large, ns=(1, 1))
    with pytest.raises(OSError, match="it was modified since it was opened"):
        dataset[51]
