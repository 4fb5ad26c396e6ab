"""``pario records``: actions that only read."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pario import wording
from pario.cli.standard import print_finding
from pario.errors import ParioError
from pario.messages import print_json, print_line, print_note
from pario.paths import is_url
from pario.progress import show_progress

if TYPE_CHECKING:
    from pario.records import Dataset
    from pario.records.groups import GroupedFile

#: Characters of a record that ``head`` prints.
_WIDTH = 160
#: Damaged records that ``verify`` names.
_MOST = 20
#: Lengths of records that ``bench`` tries.
_LENGTHS = (1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20)


def _open(path: str, column: str = "", errors: str = "raise") -> Dataset:
    from pario.records import Dataset

    verify = errors != "ignore"
    try:
        return Dataset(path, column=column, verify=verify, errors=errors if verify else "raise")
    except OSError as error:
        raise ParioError(
            error.strerror if error.filename is None and error.strerror else str(error)
        ) from error


def _facts(path: str) -> dict[str, Any]:
    import numpy as np

    from pario.records.groups import GroupedFile

    dataset = _open(path)
    file = dataset.file
    if isinstance(file, GroupedFile):
        return _facts_of_groups(path, file)
    lengths = np.diff(file.offsets(0, len(file)))[: len(file)]
    some = len(lengths) > 0
    percentiles = {f"p{p}": int(np.percentile(lengths, p)) for p in (1, 50, 99)} if some else {}
    return {
        "path": path,
        "format": file.format,
        "records": len(file),
        "bytes": int(lengths.sum()),
        "least": int(lengths.min()) if some else 0,
        "mean": float(lengths.mean()) if some else 0.0,
        "most": int(lengths.max()) if some else 0,
        **percentiles,
        "index_bytes": file.index_bytes if dataset.indexed else 0,
        **(dict(zip(("seed", "buckets"), file.bucketing, strict=True)) if file.bucketing else {}),
    }


def _facts_of_groups(path: str, file: GroupedFile) -> dict[str, Any]:
    import numpy as np

    records = np.diff(file.groups.firsts)
    return {
        "path": path,
        "format": file.format,
        "records": len(file),
        "bytes": int(file.groups.begins[-1] - file.groups.begins[0]),
        "groups": len(records),
        "least_records": int(records.min(initial=len(file))),
        "most_records": int(records.max(initial=0)),
        "index_bytes": file.index_bytes,
    }


def _describe_groups(facts: dict[str, Any]) -> str:
    least, most = facts["least_records"], facts["most_records"]
    records = wording.plural(most, "record")
    several = "" if least == most else f"{wording.count(least)} to "
    each = " each" if facts["groups"] > 1 else ""
    return f"{wording.plural(facts['groups'], 'group')} of {several}{records}{each}"


def _stat(arguments: argparse.Namespace) -> int:
    found = [_facts(path) for path in arguments.paths]
    if arguments.json:
        print_json(found)
        return 0
    for facts in found:
        count = wording.plural(facts["records"], "record")
        print_line(f"{facts['path']}: {count} ({facts['format']}), {wording.size(facts['bytes'])}")
        if "groups" in facts:
            print(f"  in {_describe_groups(facts)}, decoded as a whole")
        elif facts["records"]:
            named = (
                ("least", "least"),
                ("median", "p50"),
                ("mean", "mean"),
                ("99 %", "p99"),
                ("most", "most"),
            )
            print(
                "  length: "
                + ", ".join(f"{name} {wording.size(facts[key])}" for name, key in named)
            )
        if "buckets" in facts:
            print(
                f"  shuffled into buckets: {wording.count(facts['buckets'])}, seed {facts['seed']}"
            )
        if index := facts["index_bytes"]:
            print(f"  index: {wording.size(index)}")
        elif "groups" not in facts or not is_url(facts["path"]):  # such an object needs none
            print("  no index: pario records index makes one")
    return 0


def _head(arguments: argparse.Namespace) -> int:
    dataset = _open(arguments.path, arguments.column, arguments.errors)
    printed = 0
    for number in range(len(dataset)):
        if printed == arguments.number:
            break
        for record in _read(dataset, number):
            _print_record(dataset, number, record)
            printed += 1
    say_skipped(arguments.path, dataset.stats.skipped, dataset.stats.first_skipped)
    return 0


def _read(dataset: Dataset, number: int) -> list[memoryview]:
    """The record in a list; empty if it is skipped."""
    with show_progress(dataset.path):
        return [dataset[number]] if dataset.errors == "raise" else dataset[[number]]


def _print_record(dataset: Dataset, number: int, record: memoryview) -> None:
    text = wording.printable(bytes(record[:_WIDTH]).decode("utf-8", "replace"))
    name = dataset.name(number)
    label = f" {wording.printable(name)}" if name else ""
    print(
        f"{number}{label} ({wording.size(len(record))}):"
        f" {text}{'…' if len(record) > _WIDTH else ''}"
    )


def _get(arguments: argparse.Namespace) -> int:
    dataset = _open(arguments.path, arguments.column, arguments.errors)
    for number in arguments.records:
        try:
            found = _read(dataset, number)
        except IndexError as error:
            raise ParioError(str(error)) from error
        for record in found:
            sys.stdout.buffer.write(record)
    sys.stdout.buffer.flush()
    say_skipped(arguments.path, dataset.stats.skipped, dataset.stats.first_skipped)
    return 0


def say_skipped(path: str, records: int, first: str) -> None:
    """Prints on standard error that damaged records were skipped."""
    if records:
        detail = f"; the first: {first}" if first else ""
        count = wording.plural(records, "damaged record")
        print_note(f"{path}: skipped {count}{detail}")


def _verify(arguments: argparse.Namespace) -> int:
    damaged = 0
    for path in arguments.paths:
        dataset = _open(path)
        with show_progress(path) as show:
            found = dataset.file.verify(arguments.threads, _MOST, show)
        for number, damage in found:
            print_finding(f"{path}: record {number}: {damage}")
        if len(found) == _MOST:
            print_finding(f"{path}: there may be more")
        if not found:
            print_finding(
                f"{path}: {wording.plural(len(dataset), 'record is', 'records are')} well"
            )
        damaged += len(found)
    return 1 if damaged else 0


def _bench(arguments: argparse.Namespace) -> int:
    from pario._native import measure_device

    rows = []
    for length in _LENGTHS:
        found = measure_device(os.fsencode(arguments.path), length)
        if not found:
            raise ParioError(
                f"{wording.printable(arguments.path)}: cannot be measured: a file of 200 MB on a"
                " file system with O_DIRECT is needed"
            )
        bandwidth, requests = found
        rows.append(
            {
                "length": length,
                "in_order": bandwidth,
                "at_random": 1 / (1 / bandwidth + 1 / (requests * length)),
            }
        )
    break_even = next(
        (row["length"] for row in rows if row["at_random"] >= 0.8 * row["in_order"]), None
    )
    if arguments.json:
        print_json({"rows": rows, "break_even": break_even})
        return 0
    print("records of    in order      at random (16 at a time)")
    for row in rows:
        in_order, at_random = row["in_order"], row["at_random"]
        rates = f"{wording.size(in_order) + '/s':>12} {wording.size(at_random) + '/s':>12}"
        print(f"{wording.block(row['length']):>10} {rates}  {at_random / in_order:.0%}")
    print(_advice(break_even))
    return 0


def _advice(break_even: float | None) -> str:
    if break_even is None:
        return (
            "A shuffled copy pays for records of any size here: reading at random stays below 80 %"
            " of reading in order."
        )
    if break_even == _LENGTHS[0]:
        return "No shuffled copy is needed here: reading at random is as fast as in order."
    return (
        f"Records of {wording.block(break_even)} and more need no shuffled copy here: an index"
        " alone is as fast. For smaller ones it pays."
    )


ACTIONS: dict[str, Callable[[argparse.Namespace], int]] = {
    "stat": _stat,
    "head": _head,
    "get": _get,
    "verify": _verify,
    "bench": _bench,
}
