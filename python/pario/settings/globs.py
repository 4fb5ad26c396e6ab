"""Patterns of paths, as in the library (src/core/hints/values.cpp): ``*`` stands for any
characters, ``?`` for one."""

from __future__ import annotations

import re
from functools import cache

#: Separators of settings in variables: patterns and values must not contain them.
SEPARATORS = ",:"


def selects(glob: str, path: str) -> bool:
    """Tell whether a pattern selects a path; one without a directory selects by the last part, too.
    ``%stdout`` and similar names select only themselves."""
    if glob.startswith("%") or path.startswith("%"):
        return glob == path
    return _matches(glob, path) or ("/" not in glob and _matches(glob, path.rpartition("/")[2]))


def literal(path: str) -> str:
    """Return a pattern for one path: special characters become ``?``."""
    return re.sub(rf"[{SEPARATORS}*?\s]", "?", path)


def _matches(glob: str, text: str) -> bool:
    return _compile(glob).fullmatch(text) is not None


@cache
def _compile(glob: str) -> re.Pattern[str]:
    words = {"*": ".*", "?": "."}
    return re.compile(
        "".join(words.get(character, re.escape(character)) for character in glob), re.DOTALL
    )
