"""Bytes that the end of netCDF's definitions writes: fill values, and variables at new places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pario.see.analyze.cells import POSIX, find_rows
from pario.see.analyze.row_facts import RowFacts
from pario.see.tables.model import LAYERS

NETCDF, PNETCDF = LAYERS.index("netcdf"), LAYERS.index("pnetcdf")
LEAST = 8 << 20  # bytes that the definitions write
SHARE = 0.2  # of the program's bytes
MOVED = 0.5  # bytes read for each byte written: from then on they are moved


@dataclass(frozen=True)
class DefinedFile:
    """The bytes that calls on a file as a whole have written beside those of its variables."""

    row: int  # of the library's calls on the file
    below: int  # of the file itself
    needless: float
    asked: float  # bytes that the same process has written to the variables
    share: float  # of all bytes that these calls have written
    read_back: float  # part of the bytes read that the program did not ask for
    is_moved: bool


def find_defined_files(facts: RowFacts) -> Iterator[DefinedFile]:
    """Yield the files whose definitions write many bytes."""
    records = facts.records
    layer = records["layer"]
    rows = np.flatnonzero(facts.library & ((layer == NETCDF) | (layer == PNETCDF)))
    written, calls = facts.column("inner_bytes_written"), facts.column("others")
    # With fewer definitions than opens, opening and closing the file has moved the bytes.
    defining = (calls > 0) & (calls >= facts.column("opens")) & (written >= LEAST)
    # Flushes write the chunks of variables.
    defining &= facts.column("flush_time") <= facts.column("other_time")
    for row in rows[defining[rows]]:
        below = int(find_rows(records, records["process"][row], records["file"][row], POSIX)[()])
        if below < 0:
            continue
        asked = _bytes_of_variables(facts, int(row), "bytes_written")
        needless = min(float(written[row]), float(facts.column("bytes_written")[below]) - asked)
        if needless >= max(LEAST, SHARE * asked):
            read = float(facts.column("inner_bytes_read")[row])
            share = needless / float(written[row])
            moved = read >= MOVED * needless
            back = _share_read_back(facts, int(row), below, needless)
            yield DefinedFile(int(row), below, needless, asked, share, back, moved)


def _share_read_back(facts: RowFacts, row: int, below: int, needless: float) -> float:
    """Return the part of the file's bytes read that are fill values: netCDF's buffer reads them
    before the program's values replace them."""
    read = float(facts.column("bytes_read")[below])
    back = read - _bytes_of_variables(facts, row, "bytes_read")
    return min(max(back, 0.0), needless) / max(read, 1.0)


def _bytes_of_variables(facts: RowFacts, row: int, column: str) -> float:
    prefix = f"{facts.job.path(int(facts.file[row]))}:"
    files = [facts.job.path(file).startswith(prefix) for file in range(len(facts.job.files))]
    own = facts.records["process"] == facts.records["process"][row]
    return float(facts.column(column)[np.array(files)[facts.file] & own].sum())
