"""Two runs side by side on the terminal: what was gained, both splits on one scale, figures, findings, files, outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from pario import wording
from pario.analyze.comparison import Comparison, FileChange, FindingChange, Measure, OutputChange, Side
from pario.report.clean import cleaned
from pario.report.columns import Column, aligned
from pario.report.page import LEAST_WIDTH, encodable, heading, split_bar, split_legend, wrapped
from pario.report.words import OUTPUTS, amount, change, of_noise, spread

#: What one screen shows; everything with ``all``.
FINDINGS, FILES, OUTPUT_ROWS, MESSAGES = 6, 4, 6, 3
#: Files whose time changed less are not worth a row of the first screen.
WORTH_A_ROW = 0.01
STYLES = {"gone": "green", "smaller": "green", "same": "dim", "larger": "red", "new": "red"}


def render(comparison: Comparison, console: Console, all: bool = False) -> None:
    """Prints the page. Without ``all`` it fits one screen."""
    safe = cleaned(comparison)
    width = max(min(console.width, 120), LEAST_WIDTH)
    sections = (
        _verdict(safe, width),
        _figures(safe, width),
        _findings(safe, width, all),
        _files(safe, width, all),
        _outputs(safe, width, all),
        _notes(safe, all),
    )
    for number, section in enumerate(filter(None, map(list, sections))):
        for line in ([Text()] if number else []) + section:
            console.print(encodable(line, console), soft_wrap=True, highlight=False)


def _verdict(comparison: Comparison, width: int) -> Iterator[Text]:
    yield from wrapped(comparison.sentence, width, style="bold")
    yield from wrapped(comparison.certainty, width, style="dim")
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
        facts.append(f"exit status {side.exit_status}")
    room = max(width - len(side.name) - 2, LEAST_WIDTH)
    yield Text.assemble((f"{side.name}  ", "bold"), (wording.elided(" · ".join(facts), room), "dim"))
    for name, value in side.settings:
        yield Text("   " + wording.elided(f"{name}={value}", width - 3), style="dim")


def _figures(comparison: Comparison, width: int) -> Iterator[Text]:
    a, b = comparison.a.name, comparison.b.name
    columns: list[Column[Measure]] = [
        Column("", lambda row: row.name, left=True),
        Column(a, lambda row: amount(row, row.a.median)),
        Column(b, lambda row: amount(row, row.b.median)),
        Column("change", lambda row: change(row.a.median, row.b.median)),
        Column("runs differ", spread),
        Column("", of_noise, left=True),
    ]
    yield from aligned(columns, comparison.measures, width)


def _findings(comparison: Comparison, width: int, all: bool) -> Iterator[Text]:
    rows = comparison.findings if all else comparison.findings[:FINDINGS]
    if not rows:
        return
    yield heading("Findings", "seconds lost")
    columns: list[Column[FindingChange]] = [
        Column(comparison.a.name, lambda row: wording.seconds(row.seconds_a) if row.change != "new" else ""),
        Column(comparison.b.name, lambda row: wording.seconds(row.seconds_b) if row.change != "gone" else ""),
        Column("", lambda row: row.change, left=True),
        Column("", lambda row: row.title, left=True, flexible=True),
    ]
    _, *lines = aligned(columns, rows, width)
    for row, line in zip(rows, lines, strict=True):
        line.stylize(STYLES[row.change])
        yield line
    yield from _more(len(comparison.findings) - len(rows), "finding")


def _files(comparison: Comparison, width: int, all: bool) -> Iterator[Text]:
    worth = WORTH_A_ROW * max(comparison.a.split.wall, comparison.b.split.wall)
    rows: Sequence[FileChange] = comparison.files
    if not all:
        rows = [row for row in rows if abs(row.saved) >= worth][:FILES]
    if not rows:
        return
    columns: list[Column[FileChange]] = [
        Column("File", lambda row: row.path, left=True, flexible=True),
        Column("time", lambda row: wording.seconds(row.seconds_a)),
        Column("then", lambda row: wording.seconds(row.seconds_b)),
        Column("calls", lambda row: wording.short_count(row.calls_a)),
        Column("then", lambda row: wording.short_count(row.calls_b)),
        Column("bytes", lambda row: wording.size(row.bytes_a)),
        Column("then", lambda row: wording.size(row.bytes_b) if row.bytes_b != row.bytes_a else "="),
        Column("system writes", lambda row: wording.short_count(row.system_writes_b) if row.system_writes_b else ""),
    ]
    yield from aligned(columns, rows, width)
    yield from _more(comparison.file_total - len(rows), "file")


def _outputs(comparison: Comparison, width: int, all: bool) -> Iterator[Text]:
    outputs = comparison.outputs
    if outputs is None:
        return
    if not outputs:
        yield Text("No output file matches the pattern: nothing was compared.", style="bold red")
        return
    same = sum(output.state == "identical" for output in outputs)
    if same == len(outputs):
        yield Text(f"{wording.plural(same, 'output file')}: identical on both sides.", style="bold green")
        return
    yield heading("Outputs", f"{wording.count(same)} of {wording.plural(len(outputs), 'file')} identical")
    bad = [output for output in outputs if output.state != "identical"]
    shown = bad if all else bad[:OUTPUT_ROWS]
    for output in shown:
        yield _output(output, width)
    yield from _more(len(bad) - len(shown), "file")


def _output(output: OutputChange, width: int) -> Text:
    sizes = f" ({wording.size(output.size_a)}, then {wording.size(output.size_b)})" if output.state == "differs" else ""
    said = f"{OUTPUTS[output.state]}{sizes}"
    style = "dim" if output.state == "not written" else "bold red"
    return Text.assemble((said, style), f"  {wording.elided(output.path, max(width - len(said) - 2, LEAST_WIDTH))}")


def _more(number: int, what: str) -> Iterator[Text]:
    if number > 0:
        yield Text(f"and {wording.plural(number, f'more {what}')}", style="dim")


def _notes(comparison: Comparison, all: bool) -> Iterator[Text]:
    shown = comparison.messages if all else comparison.messages[:MESSAGES]
    for number, message in enumerate(shown):
        yield Text.assemble(("Note  " if number == 0 else "      ", "bold yellow"), message)
    if len(comparison.messages) > len(shown):
        yield Text(f"      and {wording.plural(len(comparison.messages) - len(shown), 'more note')}: --all", style="dim")
