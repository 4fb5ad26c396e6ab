"""``pario records`` and ``pario.records``: access by number, files readable by other programs, and
errors."""

import io
import json
import multiprocessing
import os
import pickle
import random
import signal
import struct
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pario._native import Comm, shuffle_records
from pario.cli import main
from pario.errors import ParioError
from pario.records import Dataset, Loader
from tests.python.support.lines import LINES
from tests.support.commands import start_command
from tests.support.waiting import wait_until


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    directory = tmp_path / "tree"
    for number in range(300):
        path = directory / f"class{number % 7}" / f"{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(random.Random(number).randbytes(number * 37))
    (directory / "class0" / "large.bin").write_bytes(b"y" * (3 << 20))
    (directory / "class0" / "0.bin").chmod(0o640)
    os.utime(directory / "class0" / "0.bin", ns=(1, 123456789))
    return directory


@pytest.fixture
def webdataset(tmp_path: Path) -> Path:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for number in range(50):
            for extension, data in (("jpg", b"picture" * number), ("cls", str(number).encode())):
                member = tarfile.TarInfo(f"{'long/' * 25}{number:03d}.{extension}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    return path


def files_in(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def records(*arguments: object) -> int:
    return main(["records", *map(str, arguments)])


class TestDataset:
    def test_records_are_found_by_number_slice_and_list(self, lines):
        dataset = Dataset(lines)
        assert len(dataset) == 2000 and dataset.format == "lines"
        assert bytes(dataset[0]) == LINES[0] and bytes(dataset[-1]) == LINES[-1]
        assert [bytes(record) for record in dataset[5:9]] == LINES[5:9]
        wanted = np.array([1999, 3, 3, -1, *range(100, 200)])
        assert [bytes(record) for record in dataset[wanted]] == [LINES[number] for number in wanted]
        assert [bytes(record) for record in dataset] == LINES
        assert dataset[[]] == []
        assert (
            dataset[np.array([-1, 5], "i1")]
            == dataset[np.array([1999, 5], "u8")]
            == [dataset[-1], dataset[5]]
        )

    def test_a_mask_gives_the_records_for_which_it_is_true(self, lines):
        mask = np.arange(2000) % 500 == 3
        dataset = Dataset(lines)
        assert (
            [bytes(record) for record in dataset[mask]]
            == [bytes(record) for record in dataset[mask.tolist()]]
            == LINES[3::500]
        )
        assert dataset[np.zeros(2000, bool)] == []
        with pytest.raises(IndexError, match=r"a mask of shape \[5\] for 2000 records"):
            dataset[np.ones(5, bool)]

    @pytest.mark.parametrize("numbers", [[1.5], np.array([1.0]), [[1, 2]], ["1"], [None]], ids=str)
    def test_lists_of_other_values_than_whole_numbers_are_refused(self, lines, numbers):
        with pytest.raises(TypeError, match="expected a list of whole ones"):
            Dataset(lines)[numbers]

    def test_numpy_takes_records_as_they_are(self, tmp_path):
        numbers = np.arange(600, dtype=np.float32)
        numbers.tofile(tmp_path / "numbers")
        dataset = Dataset(tmp_path / "numbers", format="fixed", size=40)
        assert np.array_equal(np.frombuffer(dataset[7], dtype=np.float32), numbers[70:80])

    def test_tokens_after_the_last_window_are_an_error_or_left_out(self, tmp_path, capsys):
        tokens, path = np.arange(1000, dtype=np.uint16), tmp_path / "train.bin"
        tokens.tofile(path)
        with pytest.raises(OSError, match=r"2000 bytes are no multiple of the 66 .* the last 20"):
            Dataset(path, format="fixed", size=66)
        windows = Dataset(path, format="fixed", size=66, drop_last=True)
        copied = pickle.loads(pickle.dumps(windows))
        command = ["index", path, "--format", "fixed", "--size", 66]
        assert records(*command) == 2
        assert records(*command, "--drop-last") == 0
        for dataset in (windows, copied, Dataset(path)):
            found = [np.frombuffer(window, "<u2") for window in dataset]
            assert np.array_equal(found, tokens[:990].reshape(30, 33))
        out = tmp_path / "out.bin"
        assert records("shuffle", path, "-o", out, "--seed", 3) == 0
        shuffled = np.fromfile(out, "<u2").reshape(30, 33)
        assert np.array_equal(sorted(shuffled.tolist()), tokens[:990].reshape(30, 33))

    @pytest.mark.parametrize("number", [2000, -2001])
    def test_an_invalid_number_is_named(self, lines, number):
        with pytest.raises(IndexError, match=f"record {number} of 2000"):
            Dataset(lines)[number]
        with pytest.raises(IndexError, match=f"record {number} of 2000"):
            Dataset(lines)[[0, number]]

    @pytest.mark.system
    def test_threads_and_forked_and_spawned_processes_share_a_dataset(self, lines):
        dataset = Dataset(lines)
        with ThreadPoolExecutor(8) as pool:
            assert [bytes(record) for record in pool.map(dataset.__getitem__, range(2000))] == LINES
        for method in ("fork", "spawn"):
            with multiprocessing.get_context(method).Pool(2) as processes:
                assert (
                    processes.map(nth, [(dataset, number) for number in range(0, 2000, 100)])
                    == LINES[::100]
                )
        assert bytes(pickle.loads(pickle.dumps(dataset))[1]) == LINES[1]

    def test_a_file_that_is_overwritten_is_refused(self, tmp_path):
        path = tmp_path / "a.txt"
        path.write_text("aa\nbbbb\ncc\n")
        dataset = Dataset(path)
        with path.open("a") as file:  # which changes no record
            file.write("dd\n")
        assert [bytes(one) for one in dataset[:]] == [b"aa", b"bbbb", b"cc"]
        path.write_text("cccc\naa\nbb\n")
        for read in (lambda: dataset[:], lambda: next(iter(Loader(dataset, 3)))):
            with pytest.raises(OSError, match="modified since it was opened"):
                read()

    def test_a_file_that_is_overwritten_in_the_middle_is_refused(self, tmp_path):
        path, end = tmp_path / "a.txt", "x" * 99 + "\n"
        path.write_text(end * 1000 + "aaa\nb\n" + end * 1000)
        dataset = Dataset(path)
        with path.open("r+") as file:
            file.seek(100_000)
            file.write("b\naaa\n")
        with pytest.raises(OSError, match="modified since it was opened"):
            dataset[:]

    def test_a_directory_is_read_without_packing(self, tree):
        dataset = Dataset(tree)
        assert {
            dataset.name(number): bytes(dataset[number]) for number in range(len(dataset))
        } == files_in(tree)

    def test_members_of_webdataset_records(self, webdataset):
        dataset = Dataset(webdataset)
        assert len(dataset) == 50
        assert dataset.sample(7) == {
            "__key__": b"long/" * 25 + b"007",
            "jpg": b"picture" * 7,
            "cls": b"7",
        }

    def test_a_stale_index_is_an_error_with_the_remedy(self, lines):
        assert records("index", lines) == 0
        with lines.open("ab") as file:
            file.write(b"one more\n")
        with pytest.raises(OSError, match="it has grown from"):
            Dataset(lines)
        assert records("index", lines, "--update") == 0
        assert bytes(Dataset(lines)[2000]) == b"one more"

    def test_an_unknown_format_must_be_named(self, tmp_path, capsys):
        (tmp_path / "what").write_bytes(b"what is this?")
        assert records("head", tmp_path / "what") == 2
        assert "format" in capsys.readouterr().err
        with pytest.raises(FileNotFoundError):
            Dataset(tmp_path / "none")


def nth(task: tuple[Dataset, int]) -> bytes:
    return bytes(task[0][task[1]])


class TestPack:
    def test_packed_files_have_their_bytes_names_and_attributes(self, tree, tmp_path):
        assert records("pack", tree, "-o", tmp_path / "a.prec") == 0
        dataset = Dataset(tmp_path / "a.prec")
        assert {
            dataset.name(number): bytes(dataset[number]) for number in range(len(dataset))
        } == files_in(tree)
        assert dataset.file.attributes(0) == (b"class0/0.bin", 0o640, 123456789)
        assert records("verify", tmp_path / "a.prec") == 0

    def test_shuffled_packs_hold_the_same_in_another_order(self, tree, tmp_path):
        for name, options in (
            ("a", []),
            ("b", ["--shuffle", "--seed", 3]),
            ("c", ["--shuffle", "--seed", 3, "--threads", 1]),
        ):
            assert records("pack", tree, "-o", tmp_path / name, *options) == 0
        plain, shuffled = Dataset(tmp_path / "a"), Dataset(tmp_path / "b")
        assert (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()
        assert sorted(map(bytes, plain)) == sorted(map(bytes, shuffled)) and list(
            map(bytes, plain)
        ) != list(map(bytes, shuffled))

    def test_a_changed_byte_is_found(self, tree, tmp_path, capsys):
        path = tmp_path / "a.prec"
        records("pack", tree, "-o", path)
        with path.open("r+b") as file:
            file.seek(1000)
            byte = file.read(1)
            file.seek(1000)
            file.write(bytes([byte[0] ^ 1]))
        assert records("verify", path) == 1
        assert "wrong checksum of its data" in capsys.readouterr().out

    def test_a_file_that_cannot_be_read_leaves_no_output(self, tree, tmp_path, capsys):
        if os.geteuid() == 0:
            pytest.skip("root reads everything")
        (tree / "class0" / "0.bin").chmod(0)
        assert records("pack", tree, "-o", tmp_path / "a.prec") == 2
        assert "EACCES" in capsys.readouterr().err and not (tmp_path / "a.prec").exists()


class TestShuffle:
    def test_same_seed_same_bytes_and_all_lines(self, lines, tmp_path):
        for name, options in (
            ("a", []),
            ("b", ["--threads", 1, "--way", "buckets"]),
            ("c", ["--way", "gather"]),
            ("d", ["--seed", 1]),
        ):
            assert records("shuffle", lines, "-o", tmp_path / name, *options) == 0
        first = (tmp_path / "a").read_bytes()
        assert (
            (tmp_path / "b").read_bytes()
            == first
            == (tmp_path / "c").read_bytes()
            != (tmp_path / "d").read_bytes()
        )
        assert sorted(first.splitlines()) == sorted(LINES) and first.splitlines() != LINES

    def test_shards_are_named_and_equal(self, lines, tmp_path):
        assert records("shuffle", lines, "-o", tmp_path / "s.txt", "--shards", 3) == 0
        shards = sorted(tmp_path.glob("s-*"))
        assert [shard.name for shard in shards] == [
            f"s-0000{number}-of-00003.txt" for number in range(3)
        ]
        assert sorted(b"".join(shard.read_bytes() for shard in shards).splitlines()) == sorted(
            LINES
        )
        assert records("shuffle", lines, "-o", tmp_path / "t.txt", "--shard-size", "50K") == 0
        assert len(list(tmp_path.glob("t-*"))) == -(-lines.stat().st_size // 51200)

    def test_webdatasets_stay_readable(self, webdataset, tmp_path):
        assert records("shuffle", webdataset, "-o", tmp_path / "b.tar", "--seed", 5) == 0
        with tarfile.open(webdataset) as before, tarfile.open(tmp_path / "b.tar") as after:
            names = after.getnames()
            assert sorted(names) == sorted(before.getnames()) and names != before.getnames()
        shuffled = Dataset(tmp_path / "b.tar")
        assert sorted(int(shuffled.sample(number)["cls"]) for number in range(50)) == list(
            range(50)
        )

    def test_packed_and_raw_files_keep_the_data_of_their_index(self, tree, tmp_path):
        records("pack", tree, "-o", tmp_path / "a.prec")
        for way in ("memory", "gather", "buckets"):
            assert (
                records(
                    "shuffle", tmp_path / "a.prec", "-o", tmp_path / f"{way}.prec", "--way", way
                )
                == 0
            )
            assert (tmp_path / f"{way}.prec").read_bytes() == (
                tmp_path / "memory.prec"
            ).read_bytes()
        shuffled = Dataset(tmp_path / "memory.prec")
        assert {
            shuffled.name(number): bytes(shuffled[number]) for number in range(len(shuffled))
        } == files_in(tree)
        assert records("verify", tmp_path / "memory.prec") == 0
        records("convert", tmp_path / "a.prec", "-o", tmp_path / "raw", "--to", "raw")
        assert records("shuffle", tmp_path / "raw", "-o", tmp_path / "raw2", "--format", "raw") == 0
        assert list(map(bytes, Dataset(tmp_path / "raw2"))) == list(map(bytes, shuffled))

    @pytest.mark.parametrize("command", [("shuffle",), ("convert", "--to", "lines")])
    def test_a_new_file_is_not_read_by_the_index_of_the_old_one(self, lines, tmp_path, command):
        path = tmp_path / "new.txt"
        path.write_bytes(b"an old line\n")
        assert records("index", path) == 0
        assert records(command[0], lines, "-o", path, *command[1:]) == 0
        assert sorted(map(bytes, Dataset(path))) == sorted(map(bytes, Dataset(lines)))

    def test_the_plan_is_explained_without_a_shuffle(self, lines, tmp_path, capsys):
        assert records("shuffle", lines, "-o", tmp_path / "out", "--explain") == 0
        assert capsys.readouterr().out.startswith("way: memory, because it fits into memory\n")
        assert not (tmp_path / "out").exists()

    def test_too_little_memory_names_the_required_amount(self, lines, tmp_path, capsys):
        assert records("shuffle", lines, "-o", tmp_path / "out", "--memory", "1M") == 2
        assert "of memory are needed" in capsys.readouterr().err

    @pytest.mark.system
    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
    def test_a_killed_shuffle_leaves_no_file(self, tmp_path, record_count, number):
        record_count("kills", 3)
        big = tmp_path / "big.txt"
        big.write_bytes(b"\n".join(b"%099d" % value for value in range(500_000)) + b"\n")
        command = [
            sys.executable,
            "-m",
            "pario",
            "records",
            "shuffle",
            str(big),
            "-o",
            str(tmp_path / "out"),
            "--way",
            "buckets",
        ]
        for delay in (0, 0.03, 0.1):  # the interrupt may come at any moment
            with start_command(command, stderr=subprocess.DEVNULL) as process:
                wait_until(
                    lambda: len(list(tmp_path.iterdir())) > 1 or process.poll() is not None,
                    "the first file of the shuffle",
                )
                time.sleep(delay)
                process.send_signal(number)
                process.wait_for_end()
            names = {path.name for path in tmp_path.iterdir()}
            assert names <= {"big.txt", "out"}
            if "out" in names:
                assert (tmp_path / "out").stat().st_size == big.stat().st_size
                (tmp_path / "out").unlink()


class TestConversions:
    def test_split_and_merge_are_inverse(self, lines, tmp_path):
        assert records("split", lines, "--shards", 3, "-o", tmp_path / "part.txt") == 0
        parts = sorted(tmp_path.glob("part-*.txt"))
        assert [len(Dataset(part)) for part in parts] == [666, 667, 667]
        assert records("merge", *parts, "-o", tmp_path / "again.txt") == 0
        assert (tmp_path / "again.txt").read_bytes() == lines.read_bytes()

    @pytest.mark.parametrize("end", [b"\n", b"\r\n"])
    def test_a_last_line_without_an_end_gets_that_of_the_first_one(self, tmp_path, end):
        path, texts = tmp_path / "in.txt", [b"a", b"bb", b"", b"c\rd"]
        path.write_bytes(end.join(texts))
        whole = path.read_bytes() + end
        assert records("merge", path, path, "-o", tmp_path / "two.txt") == 0
        assert (tmp_path / "two.txt").read_bytes() == 2 * whole
        assert records("split", path, "--shards", 4, "-o", tmp_path / "part.txt") == 0
        parts = [part.read_bytes() for part in sorted(tmp_path.glob("part-*.txt"))]
        assert parts == [text + end for text in texts]

    def test_tfrecords_have_the_frames_of_tensorflow(self, lines, tmp_path):
        path = tmp_path / "a.tfrecord"
        assert records("convert", lines, "-o", path, "--to", "tfrecord") == 0
        data, at, found = path.read_bytes(), 0, []
        while at < len(data):
            (length,) = struct.unpack_from("<Q", data, at)
            found.append(data[at + 12 : at + 12 + length])
            at += length + 16
        assert found == LINES and records("verify", path) == 0
        assert [bytes(record) for record in Dataset(path)] == LINES

    def test_there_and_back_by_every_format(self, lines, tmp_path):
        last = lines
        for kind in ("prec", "raw", "tfrecord", "lines"):
            assert records("convert", last, "-o", tmp_path / kind, "--to", kind) == 0
            last = tmp_path / kind
        assert last.read_bytes() == lines.read_bytes()

    def test_a_record_with_a_newline_is_named(self, tree, tmp_path, capsys):
        assert records("convert", tree, "-o", tmp_path / "out.txt", "--to", "lines") == 2
        assert (
            "holds a line feed" in capsys.readouterr().err and not (tmp_path / "out.txt").exists()
        )

    @pytest.mark.parametrize("source", ["packed", "unfinished"])
    def test_a_record_that_would_lose_a_carriage_return_is_named(self, tmp_path, capsys, source):
        path = tmp_path / "packed.prec"
        if source == "packed":
            (tmp_path / "in").mkdir()
            (tmp_path / "in/1").write_bytes(b"a\r")
            assert records("pack", tmp_path / "in", "-o", path) == 0
        else:
            path = tmp_path / "in.txt"
            path.write_bytes(b"a\nb\r")
        assert records("convert", path, "-o", tmp_path / "out.txt", "--to", "lines") == 2
        assert "ends with a carriage return and cannot be a line" in capsys.readouterr().err
        assert not (tmp_path / "out.txt").exists()


def test_a_negative_size_is_refused(lines):
    with pytest.raises(ParioError, match=r"Dataset: size=-1: expected 0 to"):
        Dataset(lines, format="fixed", size=-1)


class TestLooks:
    def test_stat_counts(self, lines, capsys):
        records("index", lines)
        assert records("stat", lines, "--json") == 0
        (facts,) = json.loads(capsys.readouterr().out)
        assert facts["records"] == 2000 and facts["bytes"] == lines.stat().st_size
        assert facts["least"] == min(map(len, LINES)) + 1 and 0 < facts["index_bytes"] < 6 * 2000

    def test_head_and_get_show_records(self, lines, capfdbinary):
        assert records("head", lines, "-n", 2) == 0
        assert capfdbinary.readouterr().out.splitlines()[1].endswith(LINES[1])
        assert records("get", lines, 5, -1) == 0
        assert capfdbinary.readouterr().out == LINES[5] + LINES[-1]

    def test_raw_records_take_their_lengths_from_files(self, tmp_path):
        (tmp_path / "raw").write_bytes(b"abcdef")
        np.save(tmp_path / "lengths.npy", [1, 2, 3])
        (tmp_path / "lengths.txt").write_text("1\n2\n3\n")
        np.array([1, 2, 3], dtype="<u8").tofile(tmp_path / "lengths.bin")
        for lengths in ("lengths.npy", "lengths.txt", "lengths.bin"):
            assert (
                records(
                    "index", tmp_path / "raw", "--format", "raw", "--lengths", tmp_path / lengths
                )
                == 0
            )
            assert [bytes(record) for record in Dataset(tmp_path / "raw")] == [b"a", b"bc", b"def"]


@pytest.mark.system
def test_an_exchange_after_an_interrupt_waits_for_other_ranks(tmp_path):
    lines, waits = tmp_path / "in.txt", []
    lines.write_bytes(b"a line\n" * 100_000)
    messages = Comm(0, 2, lambda to, message: None, lambda: None)

    def gather(mine):
        begin = time.monotonic()
        waits.append(messages.receive(1, -1, begin, 0.05, lambda: None))
        return [mine, mine]

    def show(done, whole):
        waits.append("the interrupt")
        raise KeyboardInterrupt

    memory = 1 << 40  # more than the tests before it have left in memory
    output, temporary = os.fsencode(tmp_path / "out"), os.fsencode(tmp_path)
    asked = ([os.fsencode(lines)], "lines", [output], 7, memory, temporary, 1, "buckets", False)
    with pytest.raises(KeyboardInterrupt):
        shuffle_records(asked, "raise", show, SimpleNamespace(rank=0, size=2, gather=gather))
    after = waits[waits.index("the interrupt") + 1 :]
    assert after and set(after) == {None}, "a wait ended before its patience"
