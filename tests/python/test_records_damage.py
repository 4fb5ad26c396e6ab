"""Damaged records: every reader of every format with checksums detects a flipped bit."""

from __future__ import annotations

import io
import os
import random
import shutil
import struct
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import pytest

from pario.cli import main, records_look, records_make
from pario.errors import ParioError
from pario.records import Dataset, Loader
from tests.support.commands import run_command

#: The first record is longer than a bucket's buffer and than the range of one checksum.
LENGTHS = [1_300_000, *range(1, 40)]
DATA = [random.Random(number).randbytes(length) for number, length in enumerate(LENGTHS)]
#: Numbers of the records to be damaged.
LONG, SHORT = 0, 7


def records(*arguments: object) -> int:
    return main(["records", *map(str, arguments)])


def make_tree(directory: Path) -> Path:
    for number, data in enumerate(DATA):
        (directory / "tree").mkdir(exist_ok=True)
        (directory / "tree" / f"{number:02d}.bin").write_bytes(data)
    return directory / "tree"


def make_prec(directory: Path) -> Path:
    path = directory / "a.prec"
    assert records("pack", make_tree(directory), "-o", path) == 0
    return path


def make_tfrecord(directory: Path) -> Path:
    path = directory / "a.tfrecord"
    assert records("convert", make_prec(directory), "--to", "tfrecord", "-o", path) == 0
    return path


def make_indexed_tfrecord(directory: Path) -> Path:
    path = make_tfrecord(directory)
    assert records("index", path) == 0
    return path


def begin_of(number: int, frame: int = 0) -> int:
    return sum(LENGTHS[:number]) + frame * number


def section_of_prec(path: Path, kind: int) -> int:
    """Returns the file offset of a section of the index."""
    image = path.read_bytes()
    (index,) = struct.unpack_from("<Q", image, len(image) - 32)
    sections = (struct.unpack_from("<IIQQQ", image, index + 56 + 32 * i) for i in range(6))
    return index + next(offset for found, _, offset, _, _ in sections if found == kind)


def make_tar(directory: Path) -> Path:
    """Makes a tar file of samples with two members, the second with an extended header."""
    path = directory / "b.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for number in range(20):
            for ending in ("bin", "é" * 60):
                member = tarfile.TarInfo(f"{number:02d}.{ending}")
                member.size = number * 40
                archive.addfile(member, io.BytesIO(bytes(member.size)))
    return path


@dataclass(frozen=True)
class Format:
    """Makes a file of a format, and locates the bytes of each kind of damage to record
    ``number``."""

    make: Callable[[Path], Path]
    data: Callable[[Path, int], int]
    length: Callable[[Path, int], int]
    checksum: Callable[[Path, int], int]


TFRECORD = (
    lambda _, number: begin_of(number, 16) + 12,
    lambda _, number: begin_of(number, 16) + 1,
    lambda _, number: begin_of(number + 1, 16) - 1,
)
FORMATS = {
    "prec": Format(
        make_prec,
        lambda _, number: begin_of(number),
        lambda path, _: section_of_prec(path, 1) + 1,
        lambda path, number: section_of_prec(path, 6) + 4 * number,
    ),
    "tfrecord": Format(make_tfrecord, *TFRECORD),
    "tfrecord with an index": Format(make_indexed_tfrecord, *TFRECORD),
}
DAMAGES = ("data", "length", "checksum", "cut off")


def damage(path: Path, format: Format, kind: str, number: int) -> None:
    """Flips one bit without a change of the modification time, as a disk error does, or cuts off
    the end."""
    facts = path.stat()
    with path.open("r+b") as file:
        if kind == "cut off":
            file.truncate(facts.st_size - 20)
            return
        at = getattr(format, kind)(path, number)
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 4]))
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def read_singly(path: Path, **options: object) -> list[bytes]:
    dataset = Dataset(path, **options)
    return [bytes(dataset[number]) for number in range(len(dataset))]


def read_in_order(path: Path, **options: object) -> list[bytes]:
    return [bytes(record) for record in Dataset(path, **options)]


def read_together(path: Path, **options: object) -> list[bytes]:
    return [bytes(record) for record in Dataset(path, **options)[:]]


def read_a_few(path: Path, **options: object) -> list[bytes]:
    dataset = Dataset(path, **options)
    batches = [dataset[begin : begin + 3] for begin in range(0, len(dataset), 3)]
    return [bytes(record) for batch in batches for record in batch]


def load(path: Path, **options: object) -> list[bytes]:
    errors = options.get("errors", "raise")
    loader = Loader(Dataset(path, **options), 8, shuffle=True, errors=errors)
    return [bytes(record) for batch in loader for record in batch]


def load_direct(path: Path, **options: object) -> list[bytes]:
    loader = Loader(
        Dataset(path, **options), 8, caching="direct", errors=options.get("errors", "raise")
    )
    return [bytes(record) for batch in loader for record in batch]


def run(*arguments: object) -> None:
    if records(*arguments) != 0:
        raise ParioError("the command failed")


def options_of(options: dict[str, object]) -> list[str]:
    skip = ["--errors", "skip"] if options.get("errors") == "skip" else []
    return [*skip, *(["--no-verify"] if options.get("verify") is False else [])]


def read_back(path: Path, format: str, verify: object) -> list[bytes]:
    """Returns the records of an output file. Damage that is found only here was missed by the
    command."""
    try:
        plain = format == "prec" or Path(f"{path}.pidx").exists()
        return read_in_order(path, verify=verify, **({} if plain else {"format": format}))
    except (ParioError, OSError) as error:
        raise AssertionError(f"the output is damaged: {error}") from error


def output_of(*action: str) -> Callable[..., list[bytes]]:
    """Returns a function that runs a command and reads the records it wrote."""

    def read(path: Path, **options: object) -> list[bytes]:
        output = path.with_name("out")
        run(*action, path, "-o", output, *options_of(options))
        files = sorted(name for name in path.parent.glob("out*") if name.suffix != ".pidx")
        kind = "raw" if "raw" in action else path.suffix[1:]
        return [
            record
            for name in files
            for record in read_back(name, kind, options.get("verify", True))
        ]

    return read


def verify(path: Path, **_: object) -> list[bytes]:
    run("verify", path)
    return DATA


def head(path: Path, **options: object) -> list[bytes]:
    run("head", path, "-n", "1000", *options_of(options))
    return DATA


def get(path: Path, **options: object) -> list[bytes]:
    run("get", path, *range(len(DATA)), *options_of(options))
    return DATA


READERS: dict[str, Callable[..., list[bytes]]] = {
    "dataset[number]": read_singly,
    "iter(dataset)": read_in_order,
    "dataset[:]": read_together,
    "dataset[begin:end]": read_a_few,
    "Loader": load,
    "Loader, direct": load_direct,
    "head": head,
    "get": get,
    "verify": verify,
    "convert": output_of("convert", "--to", "raw"),
    "convert, same format": output_of("merge"),
    "split": output_of("split", "--shards", "3"),
    "shuffle, memory": output_of("shuffle", "--way", "memory"),
    "shuffle, gather": output_of("shuffle", "--way", "gather"),
    # The limit includes the memory of this process, which repeated tests make large.
    "shuffle, buckets": output_of("shuffle", "--way", "buckets", "--memory", "16G"),
    "shuffle, fused": output_of("shuffle", "--fused"),
}
#: Actions of ``pario records`` that yield no records, or whose input is not records.
OTHERS = {"index", "stat", "bench", "pack"}


NOT_OF_PACKED = {"shuffle, fused"}
CASES = [
    pytest.param(format, reader, id=f"{format}-{reader}")
    for format in FORMATS
    for reader in READERS
    if not (format == "prec" and reader in NOT_OF_PACKED)
]


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: FORMATS[name].make(tmp_path_factory.mktemp("records")) for name in FORMATS}


@pytest.fixture
def file_of(originals: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    def copy(format: str) -> Path:
        original, directory = originals[format], Path(mkdtemp(dir=tmp_path))
        for path in (original, Path(f"{original}.pidx")):
            if path.exists():
                shutil.copy2(path, directory)
        return directory / original.name

    return copy


@pytest.mark.parametrize("reader", READERS)
def test_undamaged_records_are_read(reader: str, file_of: Callable[[str], Path]) -> None:
    for format in FORMATS if reader not in NOT_OF_PACKED else set(FORMATS) - {"prec"}:
        assert sorted(READERS[reader](file_of(format))) == sorted(DATA)


@pytest.mark.parametrize(
    ("format", "reader"), [case for case in CASES if case.values[0] != "tfrecord"]
)
def test_a_flipped_bit_of_the_data_is_an_error(
    format: str, reader: str, file_of: Callable[[str], Path]
) -> None:
    path = file_of(format)
    damage(path, FORMATS[format], "data", SHORT)
    with pytest.raises((ParioError, OSError)):
        READERS[reader](path)


@pytest.mark.system
@pytest.mark.parametrize(("format", "reader"), CASES)
def test_damage_of_each_kind_is_an_error(
    format: str, reader: str, file_of: Callable[[str], Path]
) -> None:
    for kind in DAMAGES:
        for victim in (LONG, SHORT):
            path = file_of(format)
            damage(path, FORMATS[format], kind, victim)
            with pytest.raises((ParioError, OSError)):
                READERS[reader](path)


#: Readers that return records.
RETURNING = [case for case in CASES if case.values[1] not in ("head", "get", "verify")]


@pytest.mark.system
@pytest.mark.parametrize(
    ("format", "reader"), [case for case in RETURNING if case.values[1] != "dataset[number]"]
)
def test_damaged_records_are_skipped_on_request(
    format: str, reader: str, file_of: Callable[[str], Path]
) -> None:
    for kind in ("data", "checksum"):
        for victim in (LONG, SHORT):
            path = file_of(format)
            damage(path, FORMATS[format], kind, victim)
            whole = DATA[:victim] + DATA[victim + 1 :]
            assert sorted(READERS[reader](path, errors="skip")) == sorted(whole)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("format", "reader"), RETURNING)
def test_no_checksum_is_compared_on_request(
    format: str, reader: str, file_of: Callable[[str], Path]
) -> None:
    path = file_of(format)
    damage(path, FORMATS[format], "checksum", SHORT)
    assert sorted(READERS[reader](path, verify=False)) == sorted(DATA)


@pytest.mark.parametrize("kind", ["length", "cut off"])
@pytest.mark.parametrize("reader", ["dataset[:]", "Loader", "convert", "shuffle, gather"])
def test_a_search_continues_after_a_damaged_length(
    kind: str, reader: str, file_of: Callable[[str], Path]
) -> None:
    path = file_of("tfrecord")
    damage(path, FORMATS["tfrecord"], kind, SHORT)
    lost = SHORT if kind == "length" else len(DATA) - 1
    whole = DATA[:lost] + DATA[lost + 1 :]
    assert sorted(READERS[reader](path, errors="skip")) == sorted(whole)


def test_skipped_records_are_counted(
    file_of: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = file_of("prec")
    for victim in (LONG, SHORT):
        damage(path, FORMATS["prec"], "data", victim)
    dataset = Dataset(path, errors="skip")
    assert len(dataset[:]) == len(list(dataset)) == len(DATA) - 2
    assert dataset.stats.skipped == 4 and "wrong checksum" in dataset.stats.first_skipped
    with pytest.raises(OSError, match="record 7: wrong checksum of its data"):
        dataset[SHORT]
    loader = Loader(dataset, 8, errors="skip")
    assert sum(map(len, loader)) == len(DATA) - 2 and loader.stats.skipped == 2
    for action in (["convert", "--to", "raw"], ["shuffle"], ["shuffle", "--way", "gather"]):
        run(*action, path, "-o", path.with_name("out"), "--errors", "skip")
        assert "skipped 2 damaged records; the first: " in capsys.readouterr().err


def test_names_follow_the_records_of_a_shuffle_that_skips(file_of: Callable[[str], Path]) -> None:
    path = file_of("prec")
    damage(path, FORMATS["prec"], "data", SHORT)
    run("shuffle", path, "-o", path.with_name("out.prec"), "--errors", "skip", "--seed", 3)
    out = Dataset(path.with_name("out.prec"))
    found = {out.name(number): bytes(out[number]) for number in range(len(out))}
    assert found == {
        f"{number:02d}.bin": data for number, data in enumerate(DATA) if number != SHORT
    }


@pytest.mark.parametrize(
    "reader", ["dataset[number]", "dataset[:]", "Loader", "convert", "shuffle, memory"]
)
def test_a_flipped_bit_of_a_tar_header_is_an_error(reader: str, tmp_path: Path) -> None:
    path = make_tar(tmp_path)
    assert records("index", path) == 0
    assert len(READERS[reader](path)) == 20
    for member in (".bin", "@PaxHeader"):
        image = path.read_bytes()
        at = image.index(b"09" if member == ".bin" else member.encode(), 20 * 512)
        facts = path.stat()
        path.write_bytes(image[:at] + bytes([image[at] ^ 4]) + image[at + 1 :])
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        with pytest.raises((ParioError, OSError)):
            READERS[reader](path)
        path.write_bytes(image)
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def test_members_of_a_tar_file_in_a_damaged_member_are_no_samples(tmp_path: Path) -> None:
    inner = make_tar(tmp_path).read_bytes()
    path = tmp_path / "outer.tar"
    with tarfile.open(path, "w") as archive:
        for number in range(4):
            for ending, content in (("tar", inner), ("cls", b"7")):
                member = tarfile.TarInfo(f"{number}.{ending}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    whole = [Dataset(path).sample(number) for number in range(4)]
    path.with_name("outer.tar.pidx").unlink(missing_ok=True)
    image = bytearray(path.read_bytes())
    image[image.index(b"1.tar\0") + 124 + 5] ^= 1  # in its size
    path.write_bytes(image)
    dataset = Dataset(path, errors="skip")
    assert (len(dataset), len(dataset[:]), dataset.stats.skipped) == (4, 3, 1)
    assert [dataset.sample(number) for number in (0, 2, 3)] == [whole[0], *whole[2:]]


@pytest.mark.parametrize("size", [0, 20, 300])
def test_a_packed_file_that_is_cut_off_is_named(
    size: int, file_of: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    os.truncate(path := file_of("prec"), size)
    for action in (["stat"], ["index"], ["shuffle", "-o", path.with_name("out")]):
        assert records(action[0], path, *action[1:]) == 2
        text = capsys.readouterr().err
        assert f"{path}: EINVAL" in text and "the last bytes are not those of a packed file" in text


def test_packed_files_that_were_concatenated_are_refused(
    file_of: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """The index at the end knows the records of the last one alone."""
    path = file_of("prec")
    (two := path.with_name("two.prec")).write_bytes(2 * path.read_bytes())
    with pytest.raises(OSError, match=f"{two}: EINVAL .*it begins with other bytes.*merge joins"):
        Dataset(two)
    assert records("merge", path, two, "-o", path.with_name("out.prec")) == 2
    assert "it begins with other bytes" in capsys.readouterr().err


def test_a_packed_file_that_must_not_be_read_is_named(file_of: Callable[[str], Path]) -> None:
    (path := file_of("prec")).chmod(0)
    limited = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    as_user = limited if os.geteuid() == 0 else []
    done = run_command([*as_user, sys.executable, "-m", "pario", "records", "stat", path])
    assert done.returncode == 2 and f"{path}: EACCES" in done.stderr


def write_tar(path: Path, members: dict[str, bytes]) -> bytearray:
    """Writes a tar file. Returns its bytes."""
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return bytearray(path.read_bytes())


@pytest.mark.parametrize("field", [0, 100 + 3, 124 + 5, 148 + 2], ids=str)
def test_members_of_a_tar_file_in_the_last_damaged_member_are_no_samples(
    tmp_path: Path, field: int
) -> None:
    """The damaged byte is in the name, the permissions, the size or the checksum."""
    inner = make_tar(tmp_path).read_bytes()
    names = ("0.cls", "0.tar", "1.cls", "1.tar", "2.cls", "2.tar")
    path = tmp_path / "outer.tar"
    image = write_tar(path, {name: b"7" if "cls" in name else inner for name in names})
    image[image.index(b"2.tar\0") + field] ^= 1
    path.write_bytes(image)
    dataset = Dataset(path, errors="skip")
    assert (len(dataset), len(dataset[:]), dataset.stats.skipped) == (3, 2, 1)


@pytest.mark.parametrize("field", [100 + 3, 124 + 5, 124 + 8], ids=str)
def test_members_behind_a_damaged_empty_one_are_samples(tmp_path: Path, field: int) -> None:
    path = tmp_path / "a.tar"
    image = write_tar(path, {"0.cls": b"7", "1.cls": b"7", "1.txt": b"", "2.cls": b"7"})
    image[image.index(b"1.txt\0") + field] ^= 1
    path.write_bytes(image)
    dataset = Dataset(path, errors="skip")
    assert (len(dataset), len(dataset[:]), dataset.stats.skipped) == (3, 2, 1)


@pytest.mark.parametrize("kind", ["header", "cut off"])
@pytest.mark.parametrize("reader", ["dataset[:]", "Loader", "convert", "shuffle, gather"])
def test_samples_of_a_damaged_tar_file_are_skipped_on_request(
    kind: str, reader: str, tmp_path: Path
) -> None:
    path = make_tar(tmp_path)
    whole = sorted(READERS[reader](path))
    path.with_name("b.tar.pidx").unlink(missing_ok=True)
    image = bytearray(path.read_bytes())
    if kind == "header":
        at = image.index(b"09.bin")
        image[at + 140] ^= 4  # in its time
        lost = 9
    else:
        del image[image.rindex(b"19.") + 600 :]
        lost = 19
    path.write_bytes(image)
    with pytest.raises((ParioError, OSError)):
        READERS[reader](path)
    assert sorted(READERS[reader](path, errors="skip")) == whole[:lost] + whole[lost + 1 :]
    dataset = Dataset(path, errors="skip")
    assert len(dataset[:]) == 19 and dataset.stats.skipped == 1
    assert f"record {lost}: " in dataset.stats.first_skipped


def test_groups_of_parquet_with_a_damaged_page_are_skipped_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

    path = tmp_path / "a.parquet"
    texts = [f"text {number:04d} that is stored as it is" for number in range(40)]
    parquet.write_table(
        pytest.importorskip("pyarrow").table({"text": texts}),
        path,
        row_group_size=10,
        write_page_checksum=True,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
    )
    path.write_bytes(path.read_bytes().replace(b"text 0015", b"text 0115"))
    with pytest.raises(ParioError, match="CRC"):
        Dataset(path, column="text")[:]
    dataset = Dataset(path, column="text", errors="skip")
    assert [bytes(record).decode() for record in dataset[:]] == texts[:10] + texts[20:]
    assert dataset.stats.skipped == 10
    run(
        "convert",
        path,
        "--column",
        "text",
        "--to",
        "lines",
        "-o",
        tmp_path / "out",
        "--errors",
        "skip",
    )
    assert "skipped 10 damaged records" in capsys.readouterr().err
    assert (tmp_path / "out").read_text().splitlines() == texts[:10] + texts[20:]
    assert bytes(Dataset(path, column="text", verify=False)[15]).startswith(b"text 0115")


def test_every_action_that_gives_records_is_in_the_table() -> None:
    actions = set(records_look.ACTIONS) | set(records_make.ACTIONS) | {"shuffle"}
    tested = {"merge"} | {reader.split(",")[0] for reader in READERS}
    assert actions - OTHERS == actions & tested
