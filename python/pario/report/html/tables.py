"""The tables of the page: which columns, in which words. Times of many ranks are shown per rank: only these compare with the wall time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from markupsafe import Markup

from pario import wording
from pario.analyze.model import FileRow, FileSystemRow, FunctionRow, Phase
from pario.report.html.charts import bars
from pario.report.html.table import Column, Table, bytes_text, count_text, path_text, table
from pario.report.words import LAYERS, file_name, of_slowest, rank

Row = TypeVar("Row")
#: Longer names lose their middle.
NAME_LENGTH = 400


def functions(rows: Sequence[FunctionRow], many: bool) -> Table:
    """Functions by time; ``many``: the job has more than one rank."""
    high = max((row.slowest for row in rows), default=0.0)
    columns: list[Column[FunctionRow]] = [
        Column("function", lambda row: _function(row), css=""),
        Column("time per rank" if many else "time", lambda row: bars.function_bar(row, high, many), lambda row: row.slowest, css="wide"),
        Column(
            "of the run",
            lambda row: wording.share(row.share),
            lambda row: row.share,
            "part of the wall time: mean of all ranks; without MPI, of the process with most",
        ),
        _mean(lambda row: row.mean, "seconds of the mean rank") if many else _total(),
    ]
    if many:
        columns += [
            Column(
                "slowest",
                of_slowest,
                lambda row: row.slowest,
                "seconds of the slowest rank",
            ),
            Column("rank", lambda row: rank(row.slowest_rank), lambda row: row.slowest_rank, "the slowest rank"),
            Column("waiting", _waiting, lambda row: row.waiting, "part of the time that is waiting for other ranks"),
        ]
    columns.append(
        Column("calls", lambda row: count_text(row.calls), lambda row: row.calls, "of all ranks" if many else "of all processes")
    )
    columns.append(
        Column("bytes", lambda row: bytes_text(row.bytes), lambda row: row.bytes, "of all ranks" if many else "of all processes")
    )
    return table("Functions by time", columns, rows)


def _mean(value: Callable[[Row], float], hint: str) -> Column[Row]:
    return Column("mean", lambda row: wording.seconds(value(row)), value, hint)


def _total() -> Column[Any]:
    return Column("seconds", lambda row: wording.seconds(row.seconds), lambda row: row.seconds, "of all processes")


def files(rows: Sequence[FileRow], many: bool) -> Table:
    """Files by time."""
    high = max((max(row.slowest_seconds, bars.mean_seconds(row)) if many else row.seconds for row in rows), default=0.0)
    columns: list[Column[FileRow]] = [
        Column("file", _file, css=""),
        Column(
            "time per rank" if many else "time",
            lambda row: bars.file_bar(row, high, many),
            lambda row: row.slowest_seconds if many else row.seconds,
            css="wide",
        ),
        _mean(bars.mean_seconds, "of the ranks that use it") if many else _total(),
    ]
    if many:
        columns += [
            Column("slowest", of_slowest, lambda row: row.slowest_seconds, "seconds of the slowest rank"),
            Column("rank", lambda row: rank(row.slowest_rank), lambda row: row.slowest_rank, "the slowest rank"),
            Column("fastest", _fastest, lambda row: row.fastest_seconds, "seconds of the fastest rank"),
            Column("ranks", lambda row: wording.count(row.ranks), lambda row: row.ranks, "ranks that use it"),
        ]
    columns += [
        Column("read", lambda row: bytes_text(row.bytes_read), lambda row: row.bytes_read, "bytes"),
        Column("written", lambda row: bytes_text(row.bytes_written), lambda row: row.bytes_written, "bytes"),
        Column("reads", lambda row: count_text(row.reads), lambda row: row.reads, "calls"),
        Column("writes", lambda row: count_text(row.writes), lambda row: row.writes, "calls"),
        Column(
            "other", lambda row: count_text(row.opens + row.metadata), lambda row: row.opens + row.metadata, "opens and all other calls"
        ),
        Column("by", lambda row: ", ".join(LAYERS.get(layer, layer) for layer in row.layers), css="", tip="which calls"),
    ]
    if len({row.filesystem for row in rows}) > 1:
        columns.append(Column("on", lambda row: row.filesystem, css="", tip="file system"))
    return table("Files by time", columns, rows, id="file-table")


def filesystems(rows: Sequence[FileSystemRow], ranks: int) -> Table:
    """One row per file system."""
    columns: list[Column[FileSystemRow]] = [
        Column("file system", lambda row: row.type, css=""),
        Column("mounted at", lambda row: Markup("<bdi>{}</bdi>").format(row.mount), css=""),
        Column("mean rank" if ranks > 1 else "seconds", lambda row: wording.seconds(row.seconds / max(ranks, 1)), lambda row: row.seconds),
        Column("files", lambda row: wording.count(row.files), lambda row: row.files),
        Column("calls", lambda row: wording.count(row.calls), lambda row: row.calls),
        Column("read", lambda row: bytes_text(row.bytes_read), lambda row: row.bytes_read),
        Column("written", lambda row: bytes_text(row.bytes_written), lambda row: row.bytes_written),
    ]
    return table("By file system", columns, rows)


def phases(rows: Sequence[Phase], several: str) -> Table:
    """Phases of I/O in the order of time; ``several``: ranks or processes."""
    columns: list[Column[Phase]] = [
        Column("from", lambda row: wording.seconds(row.start), lambda row: row.start, "since the start of the run"),
        Column("lasts", lambda row: wording.seconds(row.end - row.start), lambda row: row.end - row.start),
        Column("kind", lambda row: row.kind, css=""),
        Column("bytes", lambda row: bytes_text(row.bytes), lambda row: row.bytes),
        Column("rate", lambda row: wording.rate(_rate(row)) if row.bytes else "", _rate, f"of all {several} together"),
        Column(several, lambda row: wording.count(row.ranks), lambda row: row.ranks, f"{several} that take part"),
        Column("", _zoom_button, css="needs-script"),
    ]
    return table("Phases of I/O", columns, rows)


def hints(rows: Sequence[tuple[str, str, str, str]]) -> Table:
    """Hints as asked for and as in force; what differs stands out."""
    columns: list[Column[tuple[str, str, str, str]]] = [
        Column("file", lambda row: path_text(row[0], NAME_LENGTH), css=""),
        Column("hint", lambda row: Markup("<code>{}</code>").format(wording.elided(row[1], NAME_LENGTH)), css=""),
        Column("requested", lambda row: wording.elided(row[2], NAME_LENGTH), css=""),
        Column("in force", _in_force, css=""),
    ]
    return table("MPI-IO hints", columns, rows)


def _function(row: FunctionRow) -> Markup:
    around = Markup(" <small>in {}</small>").format(row.inside) if row.inside else ""
    return Markup("<code>{}</code>{}").format(row.name, around)


def _file(row: FileRow) -> Markup:
    return Markup("<i>{}</i>").format(file_name(row)) if row.group else path_text(row.path, NAME_LENGTH)


def _waiting(row: FunctionRow) -> str:
    return wording.share(row.waiting / row.seconds) if row.waiting > 0 and row.seconds > 0 else ""


def _fastest(row: FileRow) -> str:
    return wording.seconds(row.fastest_seconds) if row.fastest_rank >= 0 and row.ranks > 1 else ""


def _rate(row: Phase) -> float:
    return row.bytes / (row.end - row.start) if row.end > row.start else 0.0


def _zoom_button(row: Phase) -> Markup:
    return Markup('<button type="button" data-from="{}" data-to="{}">Zoom</button>').format(row.start, row.end)


def _in_force(row: tuple[str, str, str, str]) -> Markup | str:
    value = wording.elided(row[3], NAME_LENGTH)
    return Markup("<b>{}</b>").format(value) if row[2] and row[2] != row[3] else value
