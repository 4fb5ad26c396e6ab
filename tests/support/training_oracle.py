"""Computes the samples and batches that pario's loaders must give, without pario.

usage: python training_oracle.py < SPEC.json > BATCHES.json

A specification is {"sizes": [records of each file], "weights": null or [..], "length": samples of
an epoch, "shuffle": bool, "seed": int, "epochs": int, "keep": k (0: no filter; else samples whose
number is no multiple of k), "rule": null, ["batch", size, tokens, pool] or ["pack", window,
windows, end]}. Sample n has n % 7 + 1 tokens, all of the value n. The result has for each epoch
the list of batches; without a rule the list of [number or null, if it was filtered out].
"""

from __future__ import annotations

import hashlib
import json
import sys
from fractions import Fraction
from typing import Any

BLOCK, WHOLE, MASK = 4096, 1 << 32, (1 << 32) - 1
#: Position in the epoch, and number, of a sample.
Item = tuple[int, int]


def philox(counter: list[int], seed: int) -> list[int]:
    """Philox4x32-10 of Salmon et al., 2011."""
    a, b, c, d = counter
    low, high = seed & MASK, seed >> 32
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b = (second >> 32) ^ b ^ low, second & MASK
        c, d = (first >> 32) ^ d ^ high, first & MASK
        low, high = (low + 0x9E3779B9) & MASK, (high + 0xBB67AE85) & MASK
    return [a, b, c, d]


def draw_below(bound: int, which: int, stream: int, seed: int) -> int:
    """A uniform number below ``bound``, by Lemire's method of 2019."""
    attempt = 0
    while True:
        words = philox([which, attempt, stream, 1], seed)
        product = (words[0] << 32 | words[1]) * bound
        if product % 2**64 >= (2**64 - bound) % bound:
            return product >> 64
        attempt += 1


def shuffle(count: int, seed: int, epoch: int) -> list[int]:
    """The shuffle of Fisher and Yates."""
    numbers = list(range(count))
    for i in range(count, 1, -1):
        j = draw_below(i, i, epoch, seed)
        numbers[i - 1], numbers[j] = numbers[j], numbers[i - 1]
    return numbers


def list_epochs(spec: dict[str, Any]) -> list[list[int]]:
    """The numbers of the samples of each epoch."""
    epochs, count = range(spec["epochs"]), sum(spec["sizes"])
    if spec["weights"]:
        numbers, length = list_mixture(spec), spec["length"]
        return [numbers[epoch * length : (epoch + 1) * length] for epoch in epochs]
    if not spec["shuffle"]:
        return [list(range(count))] * spec["epochs"]
    return [shuffle(count, spec["seed"], epoch) for epoch in epochs]


def list_mixture(spec: dict[str, Any]) -> list[int]:
    """The numbers of the samples of all epochs of a mixture, one block after the other."""
    sizes, seed = spec["sizes"], spec["seed"]
    total = sum(map(Fraction, spec["weights"]))
    weights = [round(Fraction(weight) / total * WHOLE) for weight in spec["weights"]]
    largest = weights.index(max(weights))
    begins = [sum(sizes[:file]) for file in range(len(sizes))]
    streams = [stream_of(size, spec) for size in sizes]
    numbers: list[int] = []
    given = [0] * len(sizes)
    while len(numbers) < spec["length"] * spec["epochs"]:
        samples = len(numbers) + BLOCK
        wanted = [samples * weight // WHOLE for weight in weights]
        wanted[largest] += samples - sum(wanted)
        slots = [file for file, goal in enumerate(wanted) for _ in range(goal - given[file])]
        choice = shuffle(BLOCK, (seed + 0x9E3779B97F4A7C15) % 2**64, len(numbers) // BLOCK)
        numbers += [begins[slots[place]] + next(streams[slots[place]]) for place in choice]
        given = wanted
    return numbers


def stream_of(size: int, spec: dict[str, Any]) -> Any:
    """The records of a file, epoch after epoch."""
    epoch = 0
    while True:
        yield from shuffle(size, spec["seed"], epoch) if spec["shuffle"] else range(size)
        epoch += 1


def length_of(number: int) -> int:
    """The tokens of a sample."""
    return number % 7 + 1


def divide(items: list[Item], size: int, tokens: int) -> list[list[Item]]:
    """Batches of at most ``size`` samples and ``tokens`` tokens with padding."""
    batches: list[list[Item]] = [[]]
    for item in items:
        longest = max(length_of(number) for _, number in [*batches[-1], item])
        too_many = len(batches[-1]) == size if size else False
        too_long = bool(tokens) and (len(batches[-1]) + 1) * longest > tokens
        if batches[-1] and (too_many or too_long):
            batches.append([])
        batches[-1].append(item)
    return [batch for batch in batches if batch]


def make_batches(items: list[Item], rule: list[Any], seed: int, epoch: int) -> list[Any]:
    """The batches of an epoch's samples."""
    kind, *facts = rule
    if kind == "pack":
        return pack([number for _, number in items], *facts)
    size, tokens, pool = facts

    def key(batch: list[Item]) -> bytes:
        text = f"{seed} {epoch} {batch[0][0]}"
        return hashlib.blake2b(text.encode(), digest_size=8).digest()

    batches = []
    for begin in range(0, items[-1][0] + 1, pool or items[-1][0] + 1):
        if pool:
            members = [item for item in items if begin <= item[0] < begin + pool]
            members.sort(key=lambda item: length_of(item[1]))
            batches += sorted(divide(members, size, tokens), key=key)
        else:
            batches += divide(items, size, tokens)
    return [[number for _, number in batch] for batch in batches]


def pack(numbers: list[int], window: int, windows: int, end: int) -> list[Any]:
    """Batches of [tokens, segment_ids, positions] of each window."""
    stream = [
        (token, document, place)
        for document, number in enumerate(numbers)
        for place, token in enumerate([number] * length_of(number) + [end])
    ]
    cut = []
    for begin in range(0, len(stream) - window + 1, window):
        part = stream[begin : begin + window]
        documents = sorted({document for _, document, _ in part})
        tokens, members, places = zip(*part, strict=True)
        segments = [documents.index(document) + 1 for document in members]
        cut.append([list(tokens), segments, list(places)])
    return [cut[begin : begin + windows] for begin in range(0, len(cut), windows)]


def compute(spec: dict[str, Any]) -> list[list[Any]]:
    """The result for a specification."""
    result: list[list[Any]] = []
    keep = spec["keep"]
    for epoch, all_numbers in enumerate(list_epochs(spec)):
        numbers = [number if not keep or number % keep else None for number in all_numbers]
        items = [(at, number) for at, number in enumerate(numbers) if number is not None]
        rule = spec["rule"]
        result.append(make_batches(items, rule, spec["seed"], epoch) if rule else numbers)
    return result


if __name__ == "__main__":
    json.dump(compute(json.load(sys.stdin)), sys.stdout)
