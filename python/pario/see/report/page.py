"""Pieces of a page on the terminal: headings, wrapped text, the bar of a split and its legend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from pario import wording
from pario.see.analyze.model import Split
from pario.see.report.words import split_parts

#: Part of the split, its glyph (distinct without colours) and its style.
PARTS = (
    ("compute", "░", "bright_black"),
    ("communication", "▒", "cyan"),
    ("waiting", "▓", "yellow"),
    ("io", "█", "red"),
)
LEAST_WIDTH = 20
LEAST_PART = 0.001
#: Replacements for ASCII terminals; other characters become question marks.
ASCII = str.maketrans(
    {
        "░": ".",
        "▒": "-",
        "▓": "=",
        "█": "#",
        "→": ">",
        "·": "-",
        "…": "~",
        "µ": "u",
        "×": "x",
        "–": "-",
        "—": "-",
        "±": "~",
        "÷": "/",
    }
)


def encodable(line: Text, console: Console) -> Text:
    """Return the line in characters that the terminal has."""
    if not console.options.ascii_only:
        return line
    plain = line.plain.translate(ASCII).encode("ascii", "replace").decode()
    return Text(plain, spans=line.spans)


def heading(title: str, note: str = "") -> Text:
    """Return a heading, and a note on its figures."""
    return Text.assemble((title, "bold"), (f"   {note}" if note else "", "dim"))


def more(number: int, noun: str, hint: str = "") -> Iterator[Text]:
    """Yield a line with the number of omitted rows; no line for 0."""
    if number > 0:
        yield Text(f"and {wording.plural(number, f'more {noun}')}{hint}", style="dim")


def notes(messages: Sequence[str], most: int | None) -> Iterator[Text]:
    """Yield the first ``most`` notes, and the number of the others."""
    shown = messages[:most]
    for number, message in enumerate(shown):
        yield Text.assemble(("      " if number else "Note  ", "bold yellow"), message)
    for line in more(len(messages) - len(shown), "note", ": --all"):
        yield Text("      ", style="dim") + line


def show(sections: Iterable[Iterable[Text]], console: Console, apart: bool = True) -> None:
    """Print the sections that have lines, separated by an empty line if ``apart``."""
    for number, section in enumerate(filter(None, map(list, sections))):
        for line in ([Text()] if number and apart else []) + section:
            console.print(encodable(line, console), soft_wrap=True, highlight=False)


def page_width(console: Console) -> int:
    """Return the columns of a page: at most 120, because longer lines are hard to read."""
    return max(min(console.width, 120), LEAST_WIDTH)


def wrap_text(
    text: str, width: int, margin: str = "", style: str = "", hanging: int = 0
) -> Iterator[Text]:
    """Yield lines of at most ``width``, each after ``margin``; all but the first are indented by
    ``hanging`` more."""
    line = margin
    empty = True
    for word in text.split():
        word = wording.elide(word, 2 * width)
        if not empty and len(line) + 1 + len(word) > width:
            yield Text(line, style=style)
            line, empty = margin + " " * hanging, True
        line, empty = line + ("" if empty else " ") + word, False
    yield Text(line, style=style)


def split_bar(split: Split, width: int, longest: float = 0.0) -> Text:
    """Return the wall time as a full line, or as its part of ``longest`` seconds. Each visible part
    has at least one cell."""
    whole = max(round(width * split.wall / longest), len(PARTS)) if longest else width
    values = [_visible_seconds(split, name) for name, _, _ in PARTS]
    cells = [max(1, round(value / split.wall * whole)) if value > 0 else 0 for value in values]
    cells[cells.index(max(cells))] += whole - sum(cells)
    return Text.assemble(
        *((glyph * number, style) for (_, glyph, style), number in zip(PARTS, cells, strict=True))
    )


def _visible_seconds(split: Split, name: str) -> float:
    """Return the seconds of a part, 0 if it is too small for a cell; I/O is always shown."""
    value: float = getattr(split, name)
    return value if name == "io" or value >= LEAST_PART * split.wall else 0.0


def split_legend(split: Split, width: int, figures: bool = True) -> Iterator[Text]:
    """Yield the meaning of the glyphs, with shares and seconds if ``figures`` is set."""
    line, words = Text(), dict(split_parts(split))
    for name, glyph, style in PARTS:
        value = _visible_seconds(split, name)
        if value <= 0:
            continue
        share, seconds = f" {wording.share(value / split.wall)}", f" {wording.seconds(value)}"
        entry = Text.assemble(
            (f"{glyph * 2} ", style),
            words[name] + (share if figures else ""),
            (seconds if figures else "", "dim"),
        )
        if line and len(line) + 3 + len(entry) > width:
            yield line
            line = Text()
        line = Text("   ").join([line, entry]) if line else entry
    yield line
