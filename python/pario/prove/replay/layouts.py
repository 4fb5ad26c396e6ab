"""Layouts of bytes in the notation of src/core/pattern as MPI datatypes: ``8``, ``4x8/16``,
``3x(2x8/16)/100``, ``[0:8 24:4x8/16]``, ``8@-8+32``.
"""

from __future__ import annotations

import re

from mpi4py import MPI

_TOKEN = re.compile(r"-?\d+|[x/()\[\]:@+ ]")


def datatype(text: str) -> MPI.Datatype:
    """Parse a layout; returns an uncommitted datatype. Raises ValueError."""
    parser = _Parser(text)
    made = parser.layout()
    if not parser.ended:
        raise ValueError(f"{text!r} is no layout of bytes")
    return made


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._at = 0
        if "".join(self._tokens) != text:
            raise ValueError(f"{text!r} is no layout of bytes")

    @property
    def ended(self) -> bool:
        return self._at == len(self._tokens)

    def layout(self) -> MPI.Datatype:
        made = self._sequence() if self._is("[") else self._repeat()
        if not self._is("@"):
            return made
        self._take("@")
        lower = self._number()
        self._take("+")
        return made.Create_resized(lower, self._number())

    def _repeat(self) -> MPI.Datatype:
        count = self._number()
        if not self._is("x"):
            return MPI.BYTE.Create_contiguous(count)
        self._take("x")
        if self._is("("):
            self._take("(")
            inner = self.layout()
            self._take(")")
        else:
            inner = self.layout()
        self._take("/")
        return inner.Create_hvector(count, 1, self._number())

    def _sequence(self) -> MPI.Datatype:
        self._take("[")
        places, parts = [], []
        while not self._is("]"):
            places.append(self._number())
            self._take(":")
            parts.append(self.layout())
            if self._is(" "):
                self._take(" ")
        self._take("]")
        return MPI.Datatype.Create_struct([1] * len(parts), places, parts)

    def _is(self, token: str) -> bool:
        return not self.ended and self._tokens[self._at] == token

    def _take(self, token: str) -> None:
        if not self._is(token):
            raise ValueError(f"a layout of bytes with {token!r} missing")
        self._at += 1

    def _number(self) -> int:
        if self.ended or not self._tokens[self._at].lstrip("-").isdigit():
            raise ValueError("a layout of bytes with a number missing")
        self._at += 1
        return int(self._tokens[self._at - 1])
