"""Interpreters, and the scripts that they run."""

from __future__ import annotations

import re
from collections.abc import Sequence

_INTERPRETER = re.compile(
    r"(python|pypy|perl|ruby|lua|node|julia|Rscript|tclsh)[\d.]*|(ba|da|z|k)?sh"
)
#: An interpreter's options before a name that is no file.
_MODULE, _CODE = "-m", ("-c", "-e")
#: Java's options that have a value of their own.
_WITH_VALUE = ("-cp", "-classpath", "--class-path", "--module-path")


def is_interpreter(executable: str) -> bool:
    """Return True if a file is the program of an interpreter, such as Python or a shell."""
    return bool(_INTERPRETER.fullmatch(base_name(executable)))


def base_name(path: str) -> str:
    """Return the last part of a path."""
    return path.rstrip("/").rpartition("/")[2]


def find_script(words: Sequence[str]) -> str:
    """Return the script, module or class in the arguments of an interpreter, or nothing."""
    values = {number + 1 for number, word in enumerate(words) if word in _WITH_VALUE}
    for number, word in enumerate(words):
        if word in _CODE:
            return ""
        if word == _MODULE:
            return words[number + 1] if number + 1 < len(words) else ""
        if not word.startswith("-") and number not in values:
            return word
    return ""


def script_of(command: Sequence[str]) -> str:
    """Return the script of a process by the words of its command; empty for other programs, and
    for Python, whose calls have lines of their own."""
    name = base_name(command[0]) if command else ""
    runs_script = is_interpreter(name) or name == "java"
    return find_script(command[1:]) if runs_script and not name.startswith("py") else ""
