"""The stripe policy: its table, its commands, and advice on logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pario.fix.stripe.commands import commands, short, size_of
from pario.fix.stripe.layout import ALL, TO_THE_END, Part, Wanted
from pario.fix.stripe.policy import Advice, Expected, advise, choose, rules
from tests.python.jobs import add_record, make_job, set_layout

GB = 10**9
DOCS = Path(__file__).parents[2] / "docs" / "striping.md"


@pytest.mark.parametrize(
    ("expected", "count"),
    [
        (Expected(100_000), 1),
        (Expected(189 * GB, 7680, 7680), 80),
        (Expected(250 * GB, 40, 40), 40),
        (Expected(189 * GB, 1, 7680), 10),
        (Expected(411 * GB, 1216, 1216, targets=144), 144),
        (Expected(2**64 - 1, 2**40, 2**40, 2**40), 160),
    ],
)
def test_choices(expected: Expected, count: int) -> None:
    choice = choose(expected)
    assert choice.count == count and choice.reason


def test_the_table_in_the_documentation_is_that_of_the_library() -> None:
    from pario.cli.stripe_advise import table_of_rules

    assert rules() and table_of_rules() in DOCS.read_text()


def one(**words: object) -> Wanted:
    return Wanted((Part(**words),))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        (one(count=4, unit=4 << 20), "lfs setstripe -c 4 -S 4M /a"),
        (one(count=ALL), "lfs setstripe -c -1 /a"),
        (one(count=4, unit=1 << 20, start=3), "lfs setstripe -c 4 -S 1M -i 3 /a"),
        (one(targets=(0, 2, 4), pool="fast"), "lfs setstripe -o 0,2,4 -p fast /a"),
        (one(count=8, overstriped=True), "lfs setstripe -C 8 /a"),
        (
            Wanted((Part(0, 64 << 20, count=1), Part(64 << 20, TO_THE_END, 4 << 20, 8))),
            "lfs setstripe -E 64M -c 1 -E -1 -c 8 -S 4M /a",
        ),
    ],
)
def test_lustre_in_its_own_words(wanted: Wanted, line: str) -> None:
    assert commands("lustre", "/a", False, wanted) == [line]


def test_ceph_in_its_own_words() -> None:
    value = "'stripe_unit=1048576 stripe_count=8 object_size=4194304'"
    assert commands("ceph", "/a b", True, one(count=8, unit=1 << 20)) == [
        f"setfattr -n ceph.dir.layout -v {value} '/a b'"
    ]
    assert commands("ceph", "f", False, one(count=8, unit=1 << 20)) == [
        "touch f",
        f"setfattr -n ceph.file.layout -v {value} f",
    ]


def test_beegfs_in_its_own_words() -> None:
    assert commands("beegfs", "/d", True, one(count=8, unit=1 << 20)) == [
        "beegfs-ctl --setpattern --numtargets=8 --chunksize=1m /d"
    ]


def test_other_file_systems_have_no_commands() -> None:
    assert commands("local", "/a", False, one(count=8)) == []


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("64K", 65536),
        ("4MiB", 4 << 20),
        ("1.5g", 3 << 29),
        ("2 TB".replace(" ", ""), 2 << 40),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert size_of(text) == size and size_of(short(size)) == size


@pytest.mark.parametrize("text", ["", "M", "4X", "-1", "1e30", "nan"])
def test_invalid_sizes(text: str) -> None:
    with pytest.raises(ValueError):
        size_of(text)


def advice(found: list[Advice]) -> dict[str, tuple[int, int, int, bool]]:
    return {
        one.path: (one.expected.writers, one.expected.files, one.choice.count, one.change)
        for one in found
    }


def test_a_log_gives_the_use_of_each_file() -> None:
    job = make_job(ranks=8)
    add_record(job, range(8), "/scratch/shared.h5", bytes_written=2 * GB, end_written=16 * GB)
    set_layout(job, "/scratch/shared.h5", 1 << 20, [3])
    add_record(job, 0, "/scratch/log", bytes_written=1000, end_written=1000)
    set_layout(job, "/scratch/log", 1 << 20, range(16))
    add_record(job, range(8), "/scratch/restart", bytes_read=20 * GB, end_read=20 * GB)
    add_record(job, range(8), "/etc/hosts", bytes_read=100, end_read=100)
    add_record(job, 0, "/dev/shm/ucx_shm_posix_1", bytes_written=9000, end_written=9000)
    for rank in range(8):
        add_record(job, rank, f"/scratch/parts/{rank}", bytes_written=2 * GB, end_written=2 * GB)
    found = advice(advise(job, targets=100))
    assert found["/scratch/shared.h5"] == (8, 1, 8, True)
    assert found["/scratch/log"] == (1, 1, 1, True)
    assert found["/scratch/restart"] == (8, 1, 8, False)
    assert found["/scratch/parts/5"] == (1, 8, 4, False)
    assert "/etc/hosts" not in found and "/dev/shm/ucx_shm_posix_1" not in found


def test_a_log_of_sums_knows_the_ranks() -> None:
    job = make_job(ranks=1000)
    add_record(job, -1, "/scratch/shared", bytes_written=300 * GB, end_written=300 * GB, ranks=1000)
    assert advice(advise(job))["/scratch/shared"][:3] == (1000, 1, 80)
