"""Names of functions that are one participle, such as ``told`` or ``carried_out``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tools.prose.extract import blank_comments

_IRREGULAR = frozenset(
    "begun bent bound brought broken built bought caught chosen cut dealt done drawn driven "
    "fallen fed felt forgotten fought found frozen given gone grown held hidden hit hung "
    "kept known laid led left lent lit lost made meant met paid put said seen sent set "
    "shown shut sold sought spent split spread stood stolen stuck struck sunk swept taken "
    "taught thrown told torn understood undone unset woken won worn wound written".split()
)
#: These are verbs or nouns, too, so that the name is an action or a thing.
_VERBS = frozenset(
    "cut embed exceed feed found hit lead led left need proceed put seed set shed speed split "
    "succeed unset wound bound".split()
)
_PARTICLES = frozenset("aside away back by down in off on out over up".split())
#: Names that Python's io module and its file objects prescribe.
_PRESCRIBED = frozenset({"closed"})
_DECLARATIVE = re.compile(r"\b(?:namespace|class|struct|union|extern)\b[^()=]*$")
_FUNCTION = re.compile(r"^[\w:<>,*&\[\]\s~]*[\w>*&]\s*[\s*&](?P<name>[A-Za-z_]\w*)\s*\(")
_NOT_TYPES = re.compile(r"\b(?:return|else|case|using|typedef|define|new|delete|throw|goto)\b")


def find_participles(path: str, source: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of each such function that a C++, C or Python file declares."""
    suffix = Path(path).suffix
    if suffix == ".py":
        found = list_python_functions(source)
    elif suffix in {".cpp", ".hpp", ".c", ".h"}:
        found = list_cpp_functions(source)
    else:
        return
    yield from sorted((line, name) for line, name in found if is_participle(name))


def is_participle(name: str) -> bool:
    """Tell whether a name is one participle, alone or with a particle."""
    first, *rest = name.strip("_").split("_")
    if len(rest) > 1 or (rest and rest[0] not in _PARTICLES) or name in _PRESCRIBED:
        return False
    if not rest and first in _VERBS:
        return False
    regular = len(first) > 4 and first.endswith("ed") and first not in _VERBS
    return regular or first in _IRREGULAR


def list_python_functions(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of functions and methods; properties are nouns and left out."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = {ast.unparse(item).rpartition(".")[2] for item in node.decorator_list}
            if not names & {"property", "cached_property", "fixture", "setter"}:
                yield node.lineno, node.name


def list_cpp_functions(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of the functions that a file declares outside of function bodies.

    A scanner, not a parser: it follows braces and looks at the statements of namespaces and
    classes. Members that are defined outside of their class are left out: the class declares them.
    """
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", _blank, blank_comments(source), flags=re.M)
    begin = 0  # of the current statement
    bodies = 0  # open braces since the outermost one that is no namespace or class
    for found in re.finditer(r"[{};]|\b(?:public|private|protected)\s*:", text):
        mark = found[0]
        statement = text[begin : found.start()]
        if bodies == 0 and mark in "{;":
            declared = _FUNCTION.match(statement.lstrip())
            if declared and not _NOT_TYPES.search(declared[0]):
                skipped = len(statement) - len(statement.lstrip())
                offset = begin + skipped + declared.start("name")
                yield text.count("\n", 0, offset) + 1, declared["name"]
        if mark == "{" and (bodies or not _DECLARATIVE.search(statement)):
            bodies += 1
        elif mark == "}" and bodies:
            bodies -= 1
        begin = found.end()


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])
