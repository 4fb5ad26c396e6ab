"""Extraction of prose from sources: comments, docstrings and the paragraphs of Markdown.

A ``Passage`` is a run of prose without markup: adjacent comment lines, one docstring, or one
paragraph. Code in backticks and quoted text are blanked, because they cite and do not state.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

C_SUFFIXES = frozenset({".cpp", ".hpp", ".c", ".h", ".def"})
HASH_SUFFIXES = frozenset({".sh", ".cmake", ".toml", ".mk"})
HASH_NAMES = frozenset({"CMakeLists.txt", "Makefile", "run"})

# Strings come first in each alternative, so that comment signs inside them are skipped.
_C_TOKEN = re.compile(
    r'R"(?P<mark>[^()\s]*)\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'"
    r"|(?P<line>//[^\n]*)"
    r"|(?P<block>/\*.*?\*/)",
    re.DOTALL,
)
_HASH_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|(?:^|(?<=\s))(?P<line>#[^\n]*)', re.M)
_CITED = re.compile(r'``[^`]*``|`[^`]*`|"[^"\n]*"|\]\([^)]*\)|https?://\S+|<!--.*?-->')
#: Comments for tools, and those that close a namespace.
_DIRECTIVE = re.compile(
    r"namespace\b[\w: ]*$|NOLINT|noqa\b|type: ignore|clang-format|codespell:|cspell|pragma:|ruff:"
)
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")


@dataclass
class Passage:
    """Adjacent lines of prose; ``numbers`` holds the line number of each."""

    path: str
    kind: str  # comment, docstring or paragraph
    lines: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    def text(self) -> str:
        """Join the lines and blank citations, so that offsets stay those of the joined lines."""
        joined = "\n".join(self.lines)
        return _CITED.sub(lambda found: re.sub(r"[^\n]", "_", found[0]), joined)

    def line_at(self, offset: int) -> int:
        """Find the line number of an offset in text()."""
        return self.numbers[self.text().count("\n", 0, offset)]

    def words(self) -> int:
        """Count the words."""
        return len(_WORD.findall(self.text()))


@dataclass(frozen=True)
class _Comment:
    """One comment line, without its sign."""

    number: int
    text: str
    alone: bool  # no code before it on its line


def extract(path: str, source: str) -> list[Passage]:
    """List the passages of a file; a file of an unknown kind has none."""
    reader = _choose_reader(path)
    return list(reader(path, source)) if reader else []


def blank_comments(source: str) -> str:
    """Replace comments, strings and characters of C++ by blanks; line numbers stay."""
    return _C_TOKEN.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)


def _choose_reader(path: str) -> Callable[[str, str], Iterator[Passage]] | None:
    name, suffix = Path(path).name, Path(path).suffix
    if suffix in C_SUFFIXES:
        return _read_c
    if suffix in {".py", ".pyi"}:
        return _read_python
    if suffix == ".md":
        return _read_markdown
    if suffix in HASH_SUFFIXES or name in HASH_NAMES:
        return _read_hash
    return None


def _read_c(path: str, source: str) -> Iterator[Passage]:
    return _join_comments(path, _find_c_comments(source))


def _read_hash(path: str, source: str) -> Iterator[Passage]:
    return _join_comments(path, _find_comments(_HASH_TOKEN, source))


def _read_python(path: str, source: str) -> Iterator[Passage]:
    yield from _join_comments(path, _find_python_comments(source))
    for node in ast.walk(ast.parse(source)):
        if string := find_docstring(node):
            text = str(string.value)
            lines = [line.strip() for line in text.split("\n")]
            passage = Passage(path, "docstring")
            for index, line in enumerate(lines):
                if line.startswith(">>>"):
                    break
                passage.lines.append(line)
                passage.numbers.append(string.lineno + index)
            yield passage


def find_docstring(node: ast.AST) -> ast.Constant | None:
    """Find the docstring of a module, class or function."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    if not node.body or not isinstance(node.body[0], ast.Expr):
        return None
    value = node.body[0].value
    return value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def _place_of(found: re.Match[str], source: str) -> tuple[int, bool]:
    """Return the line number of a comment, and whether its line begins with it."""
    before = source[: found.start()]
    return before.count("\n") + 1, not before[before.rfind("\n") + 1 :].strip()


def _find_c_comments(source: str) -> Iterator[_Comment]:
    for found in _C_TOKEN.finditer(source):
        text = found["line"] or found["block"]
        if text is None:
            continue
        number, alone = _place_of(found, source)
        body = re.sub(r"^/\*+|\*+/$", "", text) if found["block"] else text
        for index, line in enumerate(body.split("\n")):
            yield _Comment(number + index, re.sub(r"^\s*(?:///?<?|\*)\s?", "", line), alone)


def _find_comments(token: re.Pattern[str], source: str) -> Iterator[_Comment]:
    for found in token.finditer(source):
        if text := found["line"]:
            number, alone = _place_of(found, source)
            if not text.startswith("#!"):
                yield _Comment(number, text.lstrip("#: "), alone)


def _find_python_comments(source: str) -> Iterator[_Comment]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            alone = not token.line[: token.start[1]].strip()
            yield _Comment(token.start[0], token.string.lstrip("#: "), alone)


def _join_comments(path: str, comments: Iterator[_Comment]) -> Iterator[Passage]:
    """Join adjacent lines; a comment beside code ends the passage before it."""
    passage = Passage(path, "comment")
    for comment in comments:
        if _DIRECTIVE.match(comment.text):
            continue
        adjacent = passage.numbers and comment.number - passage.numbers[-1] == 1
        if not (adjacent and comment.alone):
            if passage.lines:
                yield passage
            passage = Passage(path, "comment")
        passage.lines.append(comment.text)
        passage.numbers.append(comment.number)
    if passage.lines:
        yield passage


def _read_markdown(path: str, source: str) -> Iterator[Passage]:
    """Yield paragraphs, list items and rows of tables; code blocks are skipped."""
    passage = Passage(path, "paragraph")
    fenced = heading = False
    blank_before = True
    for number, line in enumerate(source.split("\n"), 1):
        stripped = line.strip()
        fence = stripped.startswith("```")
        code = fenced or fence or (blank_before and line.startswith("    "))
        begins = code or heading or not stripped or re.match(r"[#|>-]|\d+\. |\* ", stripped)
        if begins and passage.lines:
            yield passage
            passage = Passage(path, "paragraph")
        if stripped and not code:
            passage.lines.append(re.sub(r"^[#>*-]+ ", "", stripped))
            passage.numbers.append(number)
        fenced ^= fence
        heading = stripped.startswith("#")
        blank_before = not stripped or code
    if passage.lines:
        yield passage
