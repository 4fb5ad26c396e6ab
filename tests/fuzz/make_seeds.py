"""Writes the first inputs of the fuzzers: small valid files of every format, one folder per target.

usage: python -m tests.fuzz.make_seeds FOLDER
"""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pario.cli import main as pario
from pario.move.archive import pack

LUSTRE = bytes.fromhex(
    "d00bd10b01000000" + "00" * 16 + "000010000400ffff",
)
LUSTRE_OBJECTS = bytes.fromhex("d00bd10b01000000" + "00" * 16 + "0000100002000100") + b"".join(
    bytes(20) + struct.pack("<I", target) for target in (1, 3)
)
TEXTS: dict[str, list[bytes]] = {
    "stripes": [
        LUSTRE,
        LUSTRE_OBJECTS,
        b"stripe_unit=4194304 stripe_count=1 object_size=4194304 pool=cephfs.data",
    ],
    "subfile_map": [b"pario subfiles 1\nfiles 4\nunit 4194304\n"],
    "layout_text": [
        b"4x8/16",
        b"3x(2x8/16)/100",
        b"[0:8 24:4x8/16]",
        b"8@-8+32",
        b"[0:3 5:(2x1/3)@0+9]",
    ],
    "mountinfo": [
        b"36 35 98:0 /root /mount\\040a rw,noatime master:1 - ext4 /dev/root rw\n37 36 0:31 / /proc"
        b" rw - proc proc rw\n"
    ],
    "stream_hints": [
        b"/data/a.out\n*.out:size=4M:count=2:prefetch=1,/data/*:verbose,%stdout:size=64K",
        b"mesh.e\n*mesh.e:size=1M:count=64:ignoreflush:lazyclose,*:size=12M:verbos",
    ],
    "file_hints": [
        b"/data/a.h5\n*.h5:cb_nodes=4:striping_factor=8:striping_unit=1M,"
        b"/data/*:romio_cb_write=enable",
        b"a\ntrace=yes",
    ],
}


def composite(parts: list[bytes]) -> bytes:
    """Makes a composite layout of Lustre with consecutive ranges of 1 GiB."""
    place = 32 + 48 * len(parts)
    entries, ends = b"", 0
    for number, part in enumerate(parts):
        entry = struct.pack("<IIQQII16x", number + 1, 0, ends, ends + (1 << 30), place, len(part))
        entries, ends, place = entries + entry, ends + (1 << 30), place + len(part)
    head = struct.pack("<IIIHHHxx12x", 0x0BD60BD0, place, 1, 0, len(parts), 0)
    return head + entries + b"".join(parts)


def tar_of(format: int) -> bytes:
    """Makes a tar of three members, one of them with a long name."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=format) as tar:
        for name in ("a.jpg", "a.json", f"{'long/' * 30}b.jpg"):
            member = tarfile.TarInfo(name)
            member.size = 3
            tar.addfile(member, io.BytesIO(b"abc"))
    members = target.getvalue().rstrip(b"\0")  # without the filler up to 10 KiB
    return members.ljust(-(-len(members) // 512) * 512 + 1024, b"\0")


def make_records(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yields files of `pario records`, and the parts of an archive."""
    lines = folder / "lines.txt"
    lines.write_bytes(b"".join(b"%d\n" % (7**i) for i in range(20)))
    tree = folder / "tree"
    (tree / "sub").mkdir(parents=True)
    for name in ("a", "b", "sub/c"):
        (tree / name).write_bytes(name.encode() * 30)
    (tree / "link").symlink_to("a")
    for command in (
        ["index", lines],
        ["convert", lines, "-o", folder / "a.tfrecord", "--to", "tfrecord"],
        ["pack", tree, "-o", folder / "tree.prec"],
        ["index", folder / "a.tfrecord"],
    ):
        assert pario(["records", *map(str, command)]) == 0
    pack(tree, folder / "packed")
    shard, index = ((folder / "packed" / name).read_bytes() for name in ("00000.tar.zst", "index"))
    tar = subprocess.run(["zstd", "-dcq"], input=shard, capture_output=True, check=True).stdout
    yield from (("record_index", path.read_bytes()) for path in folder.glob("*.pidx"))
    yield "tfrecords", (folder / "a.tfrecord").read_bytes()
    yield "packed_records", (folder / "tree.prec").read_bytes()
    yield "archive_index", index
    yield "archive_shard", shard
    yield "archive_members", struct.pack("<I", len(index)) + index + tar
    yield "archive_header", tar[:1024]


#: Functions with rules of all kinds: a frame register, an aligned stack, saved registers.
FUNCTIONS = """
void use(void*, ...);
void large(void) { char a[5000]; use(a); use(a + 1); }
void variable(int n) { char a[n]; use(a, n); use(a); }
void aligned(int n) { char a[n]; __attribute__((aligned(64))) char b[64]; use(a, b); use(b); }
int many(int a, int b, int c) { use(0); use(&a, &b, &c); use(0); return a + b * c; }
"""


def read_section(object: bytes, name: str) -> tuple[int, bytes]:
    """Returns the address and the bytes of a section of an ELF file."""
    (table,) = struct.unpack_from("<Q", object, 0x28)
    size, count, names = struct.unpack_from("<3H", object, 0x3A)
    rows = [struct.unpack_from("<2I4Q", object, table + size * i) for i in range(count)]
    for text, _, _, address, place, length in rows:
        at = rows[names][4] + text
        if object[at : object.index(b"\0", at)] == name.encode():
            return address, object[place : place + length]
    raise ValueError(f"no section {name}")


def make_rules(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yields the tables of a library for unwinding, each with an address of a function."""
    for option in ("-O2", "-O0"):
        library = folder / f"rules{option}.so"
        command = ["gcc", option, "-shared", "-fPIC", "-nostdlib", "-x", "c", "-", "-o", library]
        subprocess.run(command, input=FUNCTIONS, text=True, check=True)
        object = library.read_bytes()
        begin, table = read_section(object, ".eh_frame_hdr")
        frames, rules = read_section(object, ".eh_frame")
        text, code = read_section(object, ".text")
        content = table.ljust(frames - begin, b"\0") + rules
        for address in range(text + 1, text + len(code), len(code) // 5):
            yield "frame_rules", struct.pack("<q", address - begin) + content


def make_seeds() -> Iterator[tuple[str, bytes]]:
    """Yields pairs of a target and an input."""
    for target, texts in TEXTS.items():
        yield from ((target, text) for text in texts)
    yield "stripes", composite([LUSTRE, LUSTRE_OBJECTS])
    yield "event_columns", np.arange(96, dtype="u1").tobytes()
    for format in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        yield "tar_records", tar_of(format)
    pax = tarfile.TarInfo("n" * 120)
    pax.pax_headers = {"mtime": "-1.5", "SCHILY.xattr.user.note": "kept"}
    yield "archive_header", pax.tobuf(tarfile.PAX_FORMAT)
    yield "archive_header", b"2\n0\n512\n4096\n1\n".ljust(512, b"\0")
    with tempfile.TemporaryDirectory() as folder:
        yield from make_records(Path(folder))
        yield from make_rules(Path(folder))


def main(folder: Path) -> None:
    counts: dict[str, int] = {}
    for target, content in make_seeds():
        counts[target] = counts.get(target, 0) + 1
        path = folder / target / f"seed-{counts[target]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
