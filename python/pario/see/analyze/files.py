"""The table of files: a row for each file of the program, and a few rows that sum up all other
files."""

from __future__ import annotations

import numpy as np

from pario.see.analyze.arrays import Floats, Table, counts, sums
from pario.see.analyze.cells import KINDS, META, METADATA, READ, WRITE
from pario.see.analyze.facts import Facts
from pario.see.analyze.model import MOST_ROWS, FileRow
from pario.see.analyze.scope import KERNEL, LIBRARY, MISSING, PARIO, PIPE, STREAM
from pario.see.tables.model import LAYERS

#: Rows that sum up the files of one origin: name of the group, and title of the row.
GROUPS = {
    LIBRARY: ("library", "own files and shared memory of communication libraries"),
    MISSING: ("missing", "files looked for and not found"),
    KERNEL: ("kernel", "files of the kernel, and devices"),
}
HELPERS = ("helpers", "the launcher and its helper processes")


def file_table(facts: Facts) -> tuple[tuple[FileRow, ...], int]:
    """Return the files with most seconds, then the groups; and the number of single files."""
    if not len(facts.records) and not len(facts.times.scope.helpers):
        return (), 0
    columns = _FileColumns(facts)
    used = (counts(facts.file, len(facts.job.files)) > 0) & ~np.isin(
        facts.times.scope.origin, [*GROUPS, PARIO]
    )
    order = np.argsort(-columns.seconds, kind="stable")
    order = order[used[order]]
    single = tuple(columns.row(int(file)) for file in order[:MOST_ROWS])
    return single + _groups(facts), len(order)


def _groups(facts: Facts) -> tuple[FileRow, ...]:
    origin = facts.times.scope.origin[facts.file]
    tables = {group: facts.records[origin == number] for number, group in GROUPS.items()}
    tables[HELPERS] = facts.times.scope.helpers
    return tuple(_group(facts, *group, table) for group, table in tables.items() if len(table))


def _group(facts: Facts, group: str, words: str, records: Table) -> FileRow:
    """Return the row of a group. Its times include calls inside MPI calls."""
    seconds = np.stack([np.nan_to_num(records[kind + "_time"]) for kind in KINDS], axis=1).sum(
        axis=0
    )
    lanes = np.unique(facts.lanes.of(records["process"]))

    def total(*names: str) -> int:
        return int(sum(records[name].sum() for name in names))

    return FileRow(
        path=words,
        layers=tuple(
            layer for number, layer in enumerate(LAYERS) if (records["layer"] == number).any()
        ),
        filesystem="",
        ranks=int((lanes >= 0).sum()),
        reads=total("reads"),
        writes=total("writes"),
        opens=total("opens"),
        metadata=total(*METADATA, "failed_opens"),
        bytes_read=total("bytes_read"),
        bytes_written=total("bytes_written"),
        read_seconds=float(seconds[READ]),
        write_seconds=float(seconds[WRITE]),
        meta_seconds=float(seconds[list(META)].sum()),
        slowest_rank=-1,
        slowest_seconds=0.0,
        fastest_rank=-1,
        fastest_seconds=0.0,
        group=group,
        files=len(np.unique(records["file"])),
    )


class _FileColumns:
    """Sums per file, and the slowest and fastest rank of each."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        raw = facts.times.cells
        if not len(raw):
            raw = np.zeros((len(facts.records), len(KINDS)))
        self.read, self.write = facts.per_file(raw[:, READ]), facts.per_file(raw[:, WRITE])
        self.meta = facts.per_file(raw[:, META].sum(axis=1))
        self.seconds = self.read + self.write + self.meta
        self.calls = {
            name: facts.per_file(facts.calls(name))
            for name in ("reads", "writes", "opens", *METADATA)
        }
        self.moved = {
            name: facts.per_file(
                np.where(facts.library, facts.column(name), facts.asked_bytes(name))
            )
            for name in ("bytes_read", "bytes_written")
        }
        self.layers = np.array(
            [
                facts.per_file(np.ones(len(facts.records)), facts.records["layer"] == n) > 0
                for n in range(len(LAYERS))
            ]
        )
        self._per_rank(raw.sum(axis=1))

    def _per_rank(self, seconds: Floats) -> None:
        """Set the (file, lane) pairs and their seconds, sorted by file, then seconds."""
        facts = self.facts
        own = facts.lane >= 0
        key = facts.file[own] * facts.ranks + facts.lane[own]
        pairs, place = np.unique(key, return_inverse=True)
        spent = sums(place, seconds[own], len(pairs))
        order = np.lexsort((spent, pairs // facts.ranks))
        self.pair_file, self.pair_lane, self.pair_seconds = (
            (pairs // facts.ranks)[order],
            (pairs % facts.ranks)[order],
            spent[order],
        )
        self.shared: dict[int, list[int]] = {}
        for row in np.flatnonzero(~own & (facts.records["slowest_rank"] >= 0)):
            self.shared.setdefault(int(facts.file[row]), []).append(int(row))

    def _extremes(self, file: int) -> tuple[int, int, float, int, float]:
        """Return the number of ranks, the slowest and its seconds, the fastest and its seconds.

        A file may have rows of several layers, sums over all ranks beside rows of single ranks:
        those with the longest time decide.
        """
        low, high = np.searchsorted(self.pair_file, [file, file + 1])
        sums_of_ranks = self.facts.records[self.shared.get(file, [])]
        found = [_extremes_of_sum(row) for row in sums_of_ranks]
        if low < high:
            slow, fast = (self.facts.lanes.rank(int(self.pair_lane[at])) for at in (high - 1, low))
            spent = self.pair_seconds
            found.append((float(spent[high - 1]), slow, float(spent[low]), fast))
        if not found:
            return self.facts.ranks, -1, 0.0, -1, 0.0
        ranks = max(int(high - low), int(sums_of_ranks["ranks"].max(initial=0)))
        most, slowest, least, fastest = max(found)
        return ranks, slowest, most, fastest, least

    def row(self, file: int) -> FileRow:
        """Return the table row of one file."""
        job = self.facts.job
        ranks, slowest, most, fastest, least = self._extremes(file)
        calls = {name: int(values[file]) for name, values in self.calls.items()}
        return FileRow(
            path=job.path(file),
            layers=tuple(
                layer for layer, used in zip(LAYERS, self.layers[:, file], strict=True) if used
            ),
            filesystem=str(self.facts.filesystem_type[file]),
            ranks=ranks,
            reads=calls["reads"],
            writes=calls["writes"],
            opens=calls["opens"],
            metadata=sum(calls[name] for name in METADATA),
            bytes_read=int(self.moved["bytes_read"][file]),
            bytes_written=int(self.moved["bytes_written"][file]),
            read_seconds=float(self.read[file]),
            write_seconds=float(self.write[file]),
            meta_seconds=float(self.meta[file]),
            slowest_rank=slowest,
            slowest_seconds=most,
            fastest_rank=fastest,
            fastest_seconds=least,
            folded=bool(job.files["folded"][file]),
            stream=int(self.facts.times.scope.origin[file]) in (STREAM, PIPE),
        )


def _extremes_of_sum(row: np.void) -> tuple[float, int, float, int]:
    """Return seconds and rank of the slowest and of the fastest rank of a row that sums all
    ranks."""
    most, least = (
        float(np.nan_to_num(row[f"{word}_rank_time"])) for word in ("slowest", "fastest")
    )
    return most, int(row["slowest_rank"]), least, int(row["fastest_rank"])
