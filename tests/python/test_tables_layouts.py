"""Layout attributes of file systems, byte for byte."""

from __future__ import annotations

import struct

import pytest

from pario.tables.layouts import parse_layout
from pario.tables.model import Layout

MIB = 1 << 20
V1_COUNT_4 = bytes.fromhex("d00bd10b 01000000" + "00" * 16 + "00001000 0400 ffff")
V1_OVERSTRIPED_8 = bytes.fromhex("d00bd10b 01020000" + "00" * 16 + "00001000 0800 ffff")


def objects(*targets: int) -> bytes:
    return b"".join(struct.pack("<16xII", 0, target) for target in targets)


def v3(pool: str, *targets: int, magic: int = 0x0BD30BD0) -> bytes:
    head = struct.pack("<II16xIHH", magic, 1, MIB, len(targets), 0)
    return head + pool.encode().ljust(16, b"\0") + objects(*targets)


def composite(*components: tuple[int, int, int, bytes]) -> bytes:
    """Components are (flags, start, end, layout)."""
    at = 32 + 48 * len(components)
    entries, bodies = b"", b""
    for number, (flags, start, end, body) in enumerate(components):
        entries += struct.pack("<IIQQII16x", number, flags, start, end, at + len(bodies), len(body))
        bodies += body
    return struct.pack("<IIIHHH14x", 0x0BD60BD0, at + len(bodies), 0, 0, len(components), 0) + entries + bodies


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (V1_COUNT_4, Layout("lustre", MIB, 4)),
        (V1_COUNT_4 + objects(7, 1, 9, 3), Layout("lustre", MIB, 4, (7, 1, 9, 3))),
        (V1_OVERSTRIPED_8 + objects(*[0, 1] * 4), Layout("lustre", MIB, 8, (0, 1) * 4)),
        (v3("flash", 5, 6), Layout("lustre", MIB, 2, (5, 6), "flash")),
        (v3("", 0, 2, 4, 6, magic=0x0BD50BD0), Layout("lustre", MIB, 4, (0, 2, 4, 6))),
    ],
)
def test_plain_lustre_layouts(value, expected):
    assert parse_layout("lustre.lov", value) == expected


@pytest.mark.parametrize(("count", "expected"), [(b"\xff\xff", 3), (b"\0\0", 3)])
def test_a_default_stripe_count_is_the_number_of_objects(count, expected):
    value = V1_COUNT_4[:28] + count + V1_COUNT_4[30:] + objects(1, 2, 3)
    assert parse_layout("lustre.lov", value).stripe_count == expected


def test_of_a_composite_layout_the_last_component_with_objects_counts():
    init, not_init = 0x10, 0
    value = composite(
        (init, 0, MIB, v3("", 1)), (init, MIB, 64 * MIB, v3("", 1, 2, 3, 4)), (not_init, 64 * MIB, 2**64 - 1, V1_OVERSTRIPED_8)
    )
    assert parse_layout("lustre.lov", value).targets == (1, 2, 3, 4)


def test_data_on_the_metadata_server_is_no_stripe():
    on_mdt = struct.pack("<II16xIHH", 0x0BD10BD0, 0x100, 65536, 0, 0)
    value = composite((0x10, 0, 65536, on_mdt), (0x10, 65536, 2**64 - 1, v3("", 8, 9)))
    assert parse_layout("lustre.lov", value).targets == (8, 9)


def test_ceph_layouts():
    value = b"stripe_unit=4194304 stripe_count=2 object_size=8388608 pool=cephfs_data"
    assert parse_layout("ceph.file.layout", value) == Layout("ceph", 4 * MIB, 2, (), "cephfs_data")
    assert parse_layout("ceph.dir.layout", value + b"\0").stripe_count == 2


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("lustre.lov", b"", "expected 0x0bd10bd0"),
        ("lustre.lov", V1_COUNT_4[:20], "expected at least 32"),
        ("lustre.lov", b"\x12\x34\x56\x78" + b"\0" * 28, "magic 0x78563412"),
        ("lustre.lov", composite()[:32], "without components"),
        ("lustre.lov", composite((0x10, 0, 1, V1_COUNT_4))[:60], "too short for 1 entries"),
        ("ceph.file.layout", b"stripe_unit=1", "expected stripe_count="),
        ("gpfs.layout", b"", "expected lustre.lov"),
    ],
)
def test_what_is_no_layout_says_what_is_wrong(kind, value, text):
    with pytest.raises(ValueError, match=text):
        parse_layout(kind, value)
