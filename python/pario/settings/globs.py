"""Patterns of paths as the library understands them (src/hints/values.cpp): ``*`` stands for anything, ``?`` for one character."""

from __future__ import annotations

import re
from functools import cache

#: What separates settings in the variables that carry them: no pattern or value may have it.
SEPARATORS = ",:"


def means(glob: str, path: str) -> bool:
    """Whether a pattern means a path; one without a directory means the last part of it, too. ``%stdout`` and the like mean themselves."""
    if glob.startswith("%") or path.startswith("%"):
        return glob == path
    return _matches(glob, path) or ("/" not in glob and _matches(glob, path.rpartition("/")[2]))


def literal(path: str) -> str:
    """A pattern for one path: what would mean something else in a pattern becomes ``?``."""
    return re.sub(rf"[{SEPARATORS}*?\s]", "?", path)


def _matches(glob: str, text: str) -> bool:
    return _compiled(glob).fullmatch(text) is not None


@cache
def _compiled(glob: str) -> re.Pattern[str]:
    words = {"*": ".*", "?": "."}
    return re.compile("".join(words.get(character, re.escape(character)) for character in glob), re.DOTALL)
