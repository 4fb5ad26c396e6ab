"""Deterministic mutations of files, for parsers that are written in Python.

Considered and rejected: atheris. It instruments bytecode for libFuzzer, but numpy, json, tomllib,
HDF5 and Darshan's library do the parsing in native code, which it does not see; and it has no
wheels for every Python that pario supports. Mutations that know numbers, lines and other files of
the same format reach as many branches without coverage, and are the same on every machine.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

_NUMBERS = (0, 1, 7, 8, 127, 255, 4096, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**63, 2**64 - 1)
_WORDS = (b"", b"null", b"-1", b"1e999", b"[]", b"{}", b'"', b"\x00", b"\xff", b"../", b"NaN")
_MOST = 1 << 20  # largest result, bytes

Mutation = Callable[[random.Random, bytearray], None]


def _flip(chance: random.Random, data: bytearray) -> None:
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _set_number(chance: random.Random, data: bytearray) -> None:
    size = chance.choice((1, 2, 4, 8))
    at = chance.randrange(len(data)) // size * size
    number = chance.choice(_NUMBERS) % (1 << 8 * size)
    data[at : at + size] = number.to_bytes(size, "little")[: len(data) - at]


def _truncate(chance: random.Random, data: bytearray) -> None:
    del data[chance.randrange(len(data)) :]


def _choose_range(chance: random.Random, data: bytearray) -> tuple[int, int]:
    begin = chance.randrange(len(data))
    return begin, min(len(data), begin + chance.choice((1, 4, 8, 64, 512, 4096)))


def _remove(chance: random.Random, data: bytearray) -> None:
    begin, end = _choose_range(chance, data)
    del data[begin:end]


def _repeat(chance: random.Random, data: bytearray) -> None:
    begin, end = _choose_range(chance, data)
    data[begin:begin] = data[begin:end] * chance.choice((1, 2, 50))


def _overwrite(chance: random.Random, data: bytearray) -> None:
    begin, end = _choose_range(chance, data)
    data[begin:end] = chance.randbytes(end - begin)


def _replace_word(chance: random.Random, data: bytearray) -> None:
    """Replaces a number or a quoted text of a text file."""
    words = list(re.finditer(rb'\d+|"[^"]*"', data))
    if words:
        word = chance.choice(words)
        new = (*_WORDS, *(b"%d" % number for number in _NUMBERS))
        data[word.start() : word.end()] = chance.choice(new)


def _insert_word(chance: random.Random, data: bytearray) -> None:
    at = chance.randrange(len(data))
    data[at:at] = chance.choice(_WORDS)


_MUTATIONS: tuple[Mutation, ...] = (
    _flip,
    _set_number,
    _truncate,
    _remove,
    _repeat,
    _overwrite,
    _replace_word,
    _insert_word,
)


def mutate(seeds: Sequence[bytes], number: int) -> bytes:
    """Returns mutation `number` of the given files: one of them with one to four changes."""
    chance = random.Random(number)
    data = bytearray(chance.choice(seeds))
    if chance.random() < 0.1:
        other = chance.choice(seeds)
        data[chance.randrange(len(data)) :] = other[chance.randrange(len(other)) :]
    for _ in range(chance.choice((1, 1, 2, 4))):
        if data:
            chance.choice(_MUTATIONS)(chance, data)
    return bytes(data[:_MOST])
