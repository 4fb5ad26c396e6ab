"""The tables of docs/model.md that compare predicted and published figures, as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from pario.prove.model.machine import Machine, load, names
from pario.prove.model.published import TOLERANCE, Row, Table, off, tables


def page() -> Iterator[str]:
    """Yield the lines of all tables."""
    all_tables = list(tables())
    yield from _summary(all_tables)
    for name in sorted({table.machine for table in all_tables}):
        machine = load(name)
        yield from ("", f"### {machine.title} (`{name}`)", "")
        yield from _parameters(machine)
        for table in all_tables:
            if table.machine == name:
                yield from _rows(machine, table)
    for name in sorted(set(names()) - {table.machine for table in all_tables}):
        machine = load(name)
        yield from ("", f"### {machine.title} (`{name}`): nothing published", "")
        yield from _parameters(machine)


def list_misses(machine: Machine, table: Table) -> list[Row]:
    """List the rows whose prediction is off by more than the tolerance, or by more than 0.5 % for a
    count."""
    return [
        row
        for row in table.rows
        if abs(off(row.published, table.predict(machine, row)))
        > (0.005 if row.exact else TOLERANCE)
    ]


def _summary(all_tables: list[Table]) -> Iterator[str]:
    yield (
        "| table | machine | its fitted parameters | rows checked | of these missed | counts,"
        " right |"
    )
    yield "|---|---|---|---|---|---|"
    for table in all_tables:
        machine = load(table.machine)
        misses = list_misses(machine, table)
        counts = [row for row in table.rows if row.exact]
        right = f"{len(counts)}, {sum(row not in misses for row in counts)}" if counts else ""
        wrong = sum(row in table.checked for row in misses)
        fitted = f"{len(machine.fitted)}{' + the volume' * table.volume_fitted}"
        yield (
            f"| {table.name} | {table.machine} | {fitted} | {len(table.checked)} | {wrong} |"
            f" {right} |"
        )


def _parameters(machine: Machine) -> Iterator[str]:
    if machine.remark:
        yield from (*_wrap_text(machine.remark), "")
    yield from ("| parameter | value | from |", "|---|---|---|")
    for name, value in machine.values.items():
        how = "fitted: " if name in machine.fitted else ""
        yield f"| `{name}` | {value:.4g} | {how}{machine.sources[name]} |"


def _rows(machine: Machine, table: Table) -> Iterator[str]:
    """Yield the rows of a table, then the numbered reasons of its misses."""
    yield from ("", *_wrap_text(f"{table.title}. {table.source}."))
    yield from ("", "| | published | predicted | off | |", "|---|---|---|---|---|")
    misses = list_misses(machine, table)
    for row in table.rows:
        predicted = table.predict(machine, row)
        figures = (
            f"{_figure(row.published)} | {_figure(predicted)} |"
            f" {round(100 * off(row.published, predicted)):+d} %"
        )
        mark = f"; **missed** ({misses.index(row) + 1})" if row in misses else ""
        yield f"| {row.name} | {figures} | {_use(row)}{mark} |"
    for number, row in enumerate(misses, start=1):
        yield from (*([""] if number == 1 else []), *_wrap_text(row.reason, f"{number}. "))


def _wrap_text(text: str, mark: str = "") -> list[str]:
    """Wrap a text at 100 columns; the first line begins with a list mark."""
    return textwrap.wrap(
        text, 100, initial_indent=mark, subsequent_indent=" " * len(mark), break_on_hyphens=False
    )


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _use(row: Row) -> str:
    return (
        "fitted"
        if row.fits
        else "count"
        if row.exact
        else "follows from fitted rows"
        if row.follows
        else "checked"
    )
