"""The rules of the language check: each lists its findings in the tracked files."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tools.prose.extract import Passage, extract, find_docstring
from tools.prose.names import find_participles

COLUMNS = 100
_URL = re.compile(r"https?://\S+")
_SENTENCE = re.compile(r"(?:\A|(?<=[.:!?]\s)|(?<=\n\n))[^.:!?]+(?:[.:!?](?!\s|\Z)[^.:!?]*)*[.:!?]?")
_CLAUSE = re.compile(
    r"(?:What|Whatever|Who|Whoever|Whose)\b(?! if\b)|Those (?:who|that|which|of)\b"
)
_PLACE_CLAUSE = re.compile(r"Where\b")


@dataclass(frozen=True)
class Finding:
    """A violation of one rule."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclass(frozen=True)
class Source:
    """A tracked text file."""

    path: str
    text: str

    @cached_property
    def passages(self) -> list[Passage]:
        """The prose of the file."""
        return extract(self.path, self.text)


def load_dialect(path: Path) -> dict[str, re.Pattern[str]]:
    """Read the word list: for each expression to avoid, the advice and a pattern of words."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))["dialect"]
    return {
        advice: re.compile(rf"\b(?:{'|'.join(expressions)})\b", re.IGNORECASE)
        for advice, expressions in table.items()
    }


def find_long_lines(sources: Sequence[Source]) -> Iterator[Finding]:
    """Yield lines of more than 100 columns; addresses and tables of Markdown are free."""
    for source in sources:
        for number, line in enumerate(source.text.split("\n"), 1):
            table = source.path.endswith(".md") and line.lstrip().startswith("|")
            if len(line) > COLUMNS and not table and len(_URL.sub("", line)) > COLUMNS:
                yield Finding(source.path, number, f"{len(line)} columns; at most {COLUMNS}")


def find_what(sources: Sequence[Source]) -> Iterator[Finding]:
    """Yield each use of the word "what" in prose."""
    yield from _search(sources, re.compile(r"\bwhat\b(?!-if| if\b)", re.IGNORECASE))


def find_clause_subjects(sources: Sequence[Source]) -> Iterator[Finding]:
    """Yield sentences whose subject is a relative clause, such as "What is read lies behind it"."""
    for source in sources:
        for passage in source.passages:
            text = passage.text()
            for sentence in _SENTENCE.finditer(text):
                words = sentence[0].strip()
                place = _PLACE_CLAUSE.match(words) and "," not in words
                if (place or _CLAUSE.match(words)) and not words.endswith("?"):
                    begin = sentence.start() + len(sentence[0]) - len(sentence[0].lstrip())
                    yield Finding(source.path, passage.line_at(begin), " ".join(words.split())[:80])


def find_dialect(
    sources: Sequence[Source], dialect: dict[str, re.Pattern[str]]
) -> Iterator[Finding]:
    """Yield words of the dialect, with the advice of the word list."""
    for advice, pattern in dialect.items():
        for finding in _search(sources, pattern):
            yield Finding(finding.path, finding.line, f"{finding.text} -> {advice}")


def find_participle_names(sources: Sequence[Source]) -> Iterator[Finding]:
    """Yield functions that are named by one participle, such as ``told``."""
    for source in sources:
        for line, name in find_participles(source.path, source.text):
            yield Finding(source.path, line, f"{name}: name a function by verb and object")


def find_empty_docstrings(sources: Sequence[Source]) -> Iterator[Finding]:
    """Yield docstrings of fewer than three words."""
    for source in sources:
        if not source.path.endswith(".py"):
            continue
        for node in ast.walk(ast.parse(source.text)):
            string = find_docstring(node)
            if string and len(str(string.value).split()) < 3:
                yield Finding(source.path, string.lineno, str(string.value).strip())


def count_words(sources: Sequence[Source]) -> int:
    """Count the words of all prose."""
    return sum(passage.words() for source in sources for passage in source.passages)


def _search(sources: Sequence[Source], pattern: re.Pattern[str]) -> Iterator[Finding]:
    for source in sources:
        for passage in source.passages:
            text = passage.text()
            for found in pattern.finditer(text):
                begin, end = max(found.start() - 30, 0), found.end() + 30
                context = " ".join(text[begin:end].split())
                yield Finding(source.path, passage.line_at(found.start()), context)
