"""The comparison of two runs on the terminal: the gain, both splits on one scale, figures,
findings, files, outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from pario import wording
from pario.see.analyze.comparison import Comparison, FileChange, OutputChange, Side
from pario.see.report.clean import make_printable
from pario.see.report.page import (
    LEAST_WIDTH,
    heading,
    more,
    notes,
    page_width,
    show,
    split_bar,
    split_legend,
    wrap_text,
)
from pario.see.report.tables import comparison as tables
from pario.see.report.text_table import lines
from pario.see.report.words import OUTPUTS

#: Rows on one screen; ``all`` shows every row.
FINDINGS, FILES, OUTPUT_ROWS, MESSAGES = 6, 4, 6, 3
#: Files whose time changed by a smaller part of the wall time are not shown without ``all``.
WORTH_A_ROW = 0.01


def render(comparison: Comparison, console: Console, all: bool = False) -> None:
    """Print the page. Without ``all`` it fits one screen."""
    safe = make_printable(comparison)
    width = page_width(console)
    sections = (
        _verdict(safe, width),
        lines(tables.measures(safe), width),
        _findings(safe, width, all),
        _files(safe, width, all),
        _outputs(safe, width, all),
        notes(safe.messages, None if all else MESSAGES),
    )
    show(sections, console)


def _verdict(comparison: Comparison, width: int) -> Iterator[Text]:
    yield from wrap_text(comparison.sentence, width, style="bold")
    yield from wrap_text(comparison.certainty, width, style="dim")
    longest = max(side.split.wall for side in (comparison.a, comparison.b))
    for side in (comparison.a, comparison.b):
        yield Text()
        yield from _side(side, width)
        if longest > 0:
            yield split_bar(side.split, width, longest)
    if longest > 0:
        fuller = max(comparison.a.split, comparison.b.split, key=lambda split: split.wall)
        yield from split_legend(fuller, width, figures=False)


def _side(side: Side, width: int) -> Iterator[Text]:
    facts = [side.source]
    if side.runs > 1:
        facts.append(wording.plural(side.runs, "run"))
    if side.exit_status:
        facts.append(wording.exit_status(side.exit_status))
    space = max(width - len(side.name) - 2, LEAST_WIDTH)
    yield Text.assemble(
        (f"{side.name}  ", "bold"), (wording.elide(" · ".join(facts), space), "dim")
    )
    for name, value in side.settings:
        yield Text("   " + wording.elide(f"{name}={value}", width - 3), style="dim")


def _findings(comparison: Comparison, width: int, all: bool) -> Iterator[Text]:
    rows = comparison.findings if all else comparison.findings[:FINDINGS]
    table = tables.findings(comparison, rows)
    if rows:
        yield heading(table.title, table.note)
    yield from lines(table, width, titles=False)


def _files(comparison: Comparison, width: int, all: bool) -> Iterator[Text]:
    least = WORTH_A_ROW * max(comparison.a.split.wall, comparison.b.split.wall)
    rows: Sequence[FileChange] = comparison.files
    if not all:
        rows = [row for row in rows if abs(row.saved) >= least][:FILES]
    yield from lines(tables.files(comparison, rows), width)


def _outputs(comparison: Comparison, width: int, all: bool) -> Iterator[Text]:
    outputs = comparison.outputs
    if outputs is None:
        return
    if not outputs:
        yield Text("No output file matches the pattern: nothing was compared.", style="bold red")
        return
    same = sum(output.state == "identical" for output in outputs)
    if same == len(outputs):
        yield Text(
            f"{wording.plural(same, 'output file')}: identical on both sides.", style="bold green"
        )
        return
    yield heading(
        "Outputs", f"{wording.count(same)} of {wording.plural(len(outputs), 'file')} identical"
    )
    bad = [output for output in outputs if output.state != "identical"]
    shown = bad if all else bad[:OUTPUT_ROWS]
    for output in shown:
        yield _output(output, width)
    yield from more(len(bad) - len(shown), "file")


def _output(output: OutputChange, width: int) -> Text:
    sizes = (
        f" ({wording.size(output.size_a)}, then {wording.size(output.size_b)})"
        if output.state == "differs"
        else ""
    )
    state = f"{OUTPUTS[output.state]}{sizes}"
    style = "dim" if output.state == "not written" else "bold red"
    return Text.assemble(
        (state, style), f"  {wording.elide(output.path, max(width - len(state) - 2, LEAST_WIDTH))}"
    )
