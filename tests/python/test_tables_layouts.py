"""Layout attributes of file systems, byte for byte."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import pytest

from pario.see.tables.layouts import parse_layout
from pario.see.tables.model import Layout

MIB = 1 << 20
CASES = Path(__file__).parents[1] / "cases" / "lustre.txt"
V1_COUNT_4 = bytes.fromhex("d00bd10b 01000000" + "00" * 16 + "00001000 0400 ffff")


@dataclass
class Case:
    """A value of lustre.lov in tests/cases/lustre.txt; ``now`` is empty for an invalid value."""

    name: str
    value: bytes = b""
    now: str = ""


def read_cases() -> list[Case]:
    cases: list[Case] = []
    for line in CASES.read_text().splitlines():
        key, _, text = line.partition(": ")
        if key == "case":
            cases.append(Case(text))
        elif key == "hex":
            cases[-1].value += bytes.fromhex(text)
        elif key == "now":
            cases[-1].now = text
    return cases


def as_text(layout: Layout) -> str:
    targets = "".join(f" {target}" for target in layout.targets)
    pool = f" pool {layout.pool}" if layout.pool else ""
    return (
        f"{layout.stripe_count} x {layout.stripe_size}"
        + (f" on{targets}" if targets else "")
        + pool
    )


@pytest.mark.parametrize(
    "case", [case for case in read_cases() if case.now], ids=lambda case: case.name
)
def test_the_layout_is_that_of_the_last_component_with_objects(case: Case):
    assert as_text(parse_layout("lustre.lov", case.value)) == case.now


@pytest.mark.parametrize(
    "case", [case for case in read_cases() if not case.now], ids=lambda case: case.name
)
def test_a_damaged_layout_is_refused_with_its_beginning(case: Case):
    with pytest.raises(
        ValueError,
        match=rf"lustre.lov of {len(case.value)} bytes beginning with {case.value[:4].hex()}: \w",
    ):
        parse_layout("lustre.lov", case.value)


def test_a_default_stripe_count_is_the_number_of_objects():
    objects = b"".join(struct.pack("<16xII", 0, target) for target in (1, 2, 3))
    for count in (b"\xff\xff", b"\0\0"):
        value = V1_COUNT_4[:28] + count + V1_COUNT_4[30:] + objects
        assert parse_layout("lustre.lov", value).stripe_count == 3


def test_a_pool_of_any_bytes_is_text():
    value = struct.pack("<II16xIHH", 0x0BD30BD0, 1, MIB, 1, 0xFFFF) + b"a\xffb".ljust(16, b"\0")
    assert parse_layout("lustre.lov", value).pool == "a\\xffb"


def test_ceph_layouts():
    value = b"stripe_unit=4194304 stripe_count=2 object_size=8388608 pool=cephfs_data"
    assert parse_layout("ceph.file.layout", value) == Layout("ceph", 4 * MIB, 2, (), "cephfs_data")
    assert parse_layout("ceph.dir.layout", value + b"\0").stripe_count == 2


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (
            "ceph.file.layout",
            b"stripe_unit=1",
            "expected lustre.lov .* or .stripe_unit=... stripe_count=...",
        ),
        ("gpfs.layout", b"", "expected lustre.lov"),
    ],
)
def test_an_invalid_layout_is_an_error_that_names_the_cause(kind, value, text):
    with pytest.raises(ValueError, match=text):
        parse_layout(kind, value)
