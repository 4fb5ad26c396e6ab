"""The tables of functions, files, file systems, phases and loaders. Times of several ranks are
shown per rank, because only those are comparable with the wall time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pario import wording
from pario.see.analyze.model import FileRow, FileSystemRow, FunctionRow, LoaderRow, Phase
from pario.see.report.table import (
    BARS,
    BYTES,
    CODE,
    COUNT,
    HTML_ONLY,
    PATH,
    RATE,
    SECONDS,
    SHARE,
    WIDE,
    ZOOM,
    Column,
    Table,
    count_column,
    field_column,
)
from pario.see.report.tables import bars
from pario.see.report.words import of_slowest, rank
from pario.see.tables.model import LAYER_NAMES


def functions(rows: Sequence[FunctionRow], many: bool, total: int = 0) -> Table[FunctionRow]:
    """Return functions by time; ``many``: the job has more than one rank."""
    high = max((row.slowest for row in rows), default=0.0)
    whose = "of all ranks" if many else "of all processes"
    columns: list[Column[FunctionRow]] = [
        Column(
            "Function",
            lambda row: row.name,
            CODE,
            aside=lambda row: f"in {row.inside}" if row.inside else "",
            flexible=True,
        ),
        Column(
            "time per rank" if many else "time",
            lambda row: (bars.function_bar(row, high, many),),
            BARS,
            sort=lambda row: row.slowest,
            least_width=HTML_ONLY,
        ),
        count_column("calls", "calls", whose),
        field_column("bytes", "bytes", BYTES, whose),
        Column(
            "rate",
            lambda row: row.bytes / row.seconds if row.seconds > 0 else 0.0,
            RATE,
            f"bytes per second in these calls, of one {'rank' if many else 'process'}",
            least_width=WIDE,
        ),
        field_column(
            "of the run",
            "share",
            SHARE,
            "part of the wall time: mean of all ranks; without MPI, of the process with most",
            zeros=True,
        ),
    ]
    if not many:
        return Table("Functions by time", (*columns, _TOTAL), rows, total=total, noun="function")
    columns += [
        field_column("mean", "mean", SECONDS, "seconds of the mean rank", zeros=True),
        *_slowest("slowest"),
        Column(
            "waiting",
            lambda row: row.waiting / row.seconds if row.waiting > 0 and row.seconds > 0 else 0.0,
            SHARE,
            "part of the time that is waiting for other ranks",
            least_width=WIDE,
        ),
    ]
    return Table("Functions by time", tuple(columns), rows, total=total, noun="function")


_TOTAL: Column[Any] = field_column(
    "seconds", "seconds", SECONDS, "of all processes", short="time", zeros=True
)


def _slowest(field: str) -> list[Column[Any]]:
    return [
        field_column("slowest", field, SECONDS, "seconds of the slowest rank", text=of_slowest),
        count_column(
            "rank", "slowest_rank", "the slowest rank", text=lambda row: rank(row.slowest_rank)
        ),
    ]


def files(rows: Sequence[FileRow], many: bool, total: int = 0) -> Table[FileRow]:
    """Return files by time; ``many``: the job has more than one rank."""
    columns: list[Column[FileRow]] = [
        Column(
            "File",
            lambda row: row.path,
            PATH,
            aside=lambda row: wording.count(row.files) if row.group else "",
            flexible=True,
        ),
        _file_bar(rows, many),
        _bytes_column("read", "bytes_read", "reads"),
        _bytes_column("written", "bytes_written", "writes"),
        Column(
            "rate",
            _file_rate,
            RATE,
            f"bytes per second in reads and writes, of one {'rank' if many else 'process'}",
            least_width=WIDE,
        ),
        count_column("calls", "calls", "of any kind", zeros=True),
        count_column("reads", "reads", "calls", least_width=HTML_ONLY),
        count_column("writes", "writes", "calls", least_width=HTML_ONLY),
        Column(
            "other",
            lambda row: row.opens + row.metadata,
            COUNT,
            "opens and all other calls",
            least_width=HTML_ONLY,
        ),
        *(_file_ranks() if many else [_TOTAL]),
        Column(
            "by",
            lambda row: ", ".join(LAYER_NAMES.get(layer, layer) for layer in row.layers),
            note="the interfaces that the program calls",
            least_width=HTML_ONLY,
        ),
    ]
    if len({row.filesystem for row in rows}) > 1:
        columns.append(
            Column("on", lambda row: row.filesystem, note="file system", least_width=HTML_ONLY)
        )
    return Table("Files by time", tuple(columns), rows, total=total, noun="file", id="file-table")


def _file_rate(row: FileRow) -> float:
    seconds = row.read_seconds + row.write_seconds
    moved = row.bytes_read + row.bytes_written
    return moved / seconds if seconds > 0 and not row.group else 0.0


def _file_bar(rows: Sequence[FileRow], many: bool) -> Column[FileRow]:
    high = max(
        (max(row.slowest_seconds, bars.mean_seconds(row)) if many else row.seconds for row in rows),
        default=0.0,
    )
    return Column(
        "time per rank" if many else "time",
        lambda row: (bars.file_bar(row, high, many),),
        BARS,
        sort=lambda row: row.slowest_seconds if many else row.seconds,
        least_width=HTML_ONLY,
    )


def _bytes_column(title: str, field: str, calls: str) -> Column[FileRow]:
    """Return a column of the bytes of a direction; "0 B" for calls that moved no bytes."""

    def text(row: FileRow) -> str:
        value: int = getattr(row, field)
        return wording.size(value) if value or (getattr(row, calls) and not row.group) else ""

    return field_column(title, field, BYTES, "bytes", text=text)


def _file_ranks() -> list[Column[FileRow]]:
    return [
        Column(
            "mean",
            bars.mean_seconds,
            SECONDS,
            "seconds of the mean rank that uses the file",
            zeros=True,
            least_width=WIDE,
        ),
        *_slowest("slowest_seconds"),
        Column(
            "fastest",
            lambda row: row.fastest_seconds,
            SECONDS,
            "seconds of the fastest rank",
            text=_fastest,
            least_width=HTML_ONLY,
        ),
        count_column("ranks", "ranks", "ranks that use it", zeros=True, least_width=HTML_ONLY),
    ]


def _fastest(row: FileRow) -> str:
    return wording.seconds(row.fastest_seconds) if row.fastest_rank >= 0 and row.ranks > 1 else ""


def filesystems(rows: Sequence[FileSystemRow], ranks: int) -> Table[FileSystemRow]:
    """Return the table of file systems."""
    columns: tuple[Column[FileSystemRow], ...] = (
        Column("file system", lambda row: row.type),
        Column("mounted at", lambda row: row.mount, PATH),
        Column(
            "mean rank" if ranks > 1 else "seconds",
            lambda row: row.seconds / max(ranks, 1),
            SECONDS,
            zeros=True,
        ),
        count_column("files", "files", zeros=True),
        count_column("calls", "calls", zeros=True),
        field_column("read", "bytes_read", BYTES),
        field_column("written", "bytes_written", BYTES),
    )
    return Table("By file system", columns, rows, noun="file system")


def phases(rows: Sequence[Phase], several: str) -> Table[Phase]:
    """Return phases of I/O in the order of time; ``several``: ranks or processes."""
    columns: tuple[Column[Phase], ...] = (
        field_column("from", "start", SECONDS, "since the start of the run", zeros=True),
        Column("lasts", lambda row: row.end - row.start, SECONDS, zeros=True),
        Column("kind", lambda row: row.kind),
        field_column("bytes", "bytes", BYTES),
        Column("rate", _phase_rate, RATE, f"of all {several} together"),
        count_column(several, "ranks", f"{several} that take part", zeros=True),
        Column("", lambda row: (row.start, row.end), ZOOM),
    )
    return Table("Phases of I/O", columns, rows, noun="phase")


def _phase_rate(row: Phase) -> float:
    return row.bytes / (row.end - row.start) if row.end > row.start else 0.0


def loaders(rows: Sequence[LoaderRow], total: int = 0) -> Table[LoaderRow]:
    """Return data loaders by the time that training loops waited for them."""
    columns: tuple[Column[LoaderRow], ...] = (
        Column("Loader", loader_name, flexible=True),
        count_column(
            "loops",
            "loops",
            "processes with such a loop",
            text=lambda row: str(row.loops) if row.loops > 1 else "",
        ),
        count_column(
            "workers",
            "workers",
            "of each loop; 0: the loop loads by itself",
            text=lambda row: "threads" if row.workers < 0 else str(row.workers),
        ),
        count_column("batches", "batches", "of all loops", zeros=True),
        field_column(
            "waited", "waited", SECONDS, "for batches, except the first of each epoch", zeros=True
        ),
        field_column(
            "of step time", "stalled", SHARE, "waiting as a part of waiting and work", zeros=True
        ),
        field_column("longest", "longest", SECONDS, "of these waits"),
        field_column(
            "first batches", "first_seconds", SECONDS, "waits for them", short="first", zeros=True
        ),
        Column(
            "samples/s",
            lambda row: round(row.samples_per_second),
            COUNT,
            "batches times their size, all loops together",
        ),
    )
    note = "time that training loops waited for batches"
    return Table("Data loaders", columns, rows, note, total, "loader")


def loader_name(row: LoaderRow) -> str:
    """Return a name such as ``DataLoader(Images)``, from the names in the program."""
    return f"{row.loader.rpartition('.')[2]}({wording.name(row.data)})"
