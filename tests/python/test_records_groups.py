"""Access to Parquet and ArrayRecord by number: records equal those of a conversion for any groups,
and a Loader yields each record once."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import random
import shlex
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pario.cli import main
from pario.errors import ParioError
from pario.records import Dataset, Loader
from pario.records.groups import GroupedFile
from tests.python.support.decoding import decoding
from tests.python.support.forks import expect_child_begins_its_own
from tests.support.waiting import PATIENCE, wait_until

#: Rows of each group of the file; one group is empty.
GROUPS = (7, 1, 0, 40, 23, 30, 2)
COUNT = sum(GROUPS)


def row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "text": f"zwölf {number}",
        "image": random.Random(number).randbytes(number * 7 % 60),
        "more": [number, None],
    }


def records(*arguments: object) -> int:
    return main(["records", *map(str, arguments)])


def write_parquet(
    path: Path, groups: tuple[int, ...] = GROUPS, first: int = 0, **options: Any
) -> Path:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import pyarrow.parquet

    table = pyarrow.Table.from_pylist([row(first + number) for number in range(sum(groups))])
    with pyarrow.parquet.ParquetWriter(path, table.schema, **options) as writer:
        for begin, count in zip(np.cumsum([0, *groups]).tolist(), groups, strict=False):
            writer.write_table(table.slice(begin, count))
    return path


def write_array_record(path: Path, contents: list[bytes], options: str) -> Path:
    module = pytest.importorskip(
        "array_record.python.array_record_module", reason="array_record is not installed"
    )
    writer = module.ArrayRecordWriter(str(path), options)
    for record in contents:
        writer.write(record)
    writer.close()
    return path


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    return write_parquet(tmp_path / "a.parquet")


def convert(path: Path, *options: object) -> list[bytes]:
    out = path.with_suffix(".converted")
    assert records("convert", path, "-o", out, "--to", "prec", *options) == 0
    return list(map(bytes, Dataset(out)))


class TestDataset:
    @pytest.mark.parametrize("indexed", [False, True])
    @pytest.mark.parametrize("column", ["", "image", "text"])
    def test_records_equal_those_of_a_conversion(
        self, parquet: Path, indexed: bool, column: str
    ) -> None:
        expected = convert(parquet, *(("--column", column) if column else ()))
        assert not indexed or records("index", parquet) == 0
        dataset = Dataset(parquet, column=column)
        assert dataset.indexed == indexed and len(dataset) == COUNT and dataset.format == "parquet"
        assert list(map(bytes, dataset)) == expected and bytes(dataset[-1]) == expected[-1]
        assert list(map(bytes, dataset[5:60:3])) == expected[5:60:3]
        wanted = [COUNT - 1, 3, 3, 8, 7, -1, *range(20, 50)]
        assert list(map(bytes, dataset[wanted])) == [expected[number] for number in wanted]
        assert dataset[[]] == [] and dataset[0].readonly and dataset[[0]][0].readonly
        with pytest.raises(IndexError, match=f"record {COUNT} of {COUNT}"):
            dataset[COUNT]

    def test_rows_are_json(self, parquet: Path) -> None:
        found = json.loads(bytes(Dataset(parquet)[11]))
        assert (found["id"], found["text"], found["more"]) == (11, "zwölf 11", [11, None])

    @pytest.mark.parametrize(
        "options",
        [{"compression": "none"}, {"use_dictionary": False}, {"write_page_checksum": True}],
    )
    def test_other_ways_to_write_it(self, tmp_path: Path, options: dict[str, Any]) -> None:
        path = write_parquet(tmp_path / "b.parquet", **options)
        assert [bytes(record) for record in Dataset(path, column="image")] == [
            row(number)["image"] for number in range(COUNT)
        ]
        assert records("verify", path) == 0

    def test_of_many_groups_few_are_decoded_and_fewer_kept(
        self, parquet: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen = decoding(monkeypatch)
        dataset = Dataset(parquet, memory=1)
        dataset[[0, 50, 1, 51, 2]]
        assert sorted(seen) == [0, 4]
        dataset[52], dataset[53]
        assert seen[2:] == []
        dataset[0], dataset[50]
        assert seen[2:] == [0, 4]
        large = Dataset(parquet)
        list(large), list(large)
        assert seen[4:] == [0, 1, 3, 4, 5, 6]

    @pytest.mark.system
    def test_threads_and_forked_and_spawned_processes_share_a_dataset(self, parquet: Path) -> None:
        expected, dataset = convert(parquet), Dataset(parquet, memory=1)
        with ThreadPoolExecutor(8) as pool:
            assert [
                bytes(record) for record in pool.map(dataset.__getitem__, range(COUNT))
            ] == expected
        for method in ("fork", "spawn"):
            with multiprocessing.get_context(method).Pool(2) as processes:
                assert (
                    processes.map(nth, [(dataset, number) for number in range(0, COUNT, 10)])
                    == expected[::10]
                )
        text = Dataset(parquet, column="text")
        assert bytes(pickle.loads(pickle.dumps(text))[1]) == b"zw\xc3\xb6lf 1"

    def test_a_child_of_a_fork_does_not_wait_for_the_parents_locks(self, parquet: Path) -> None:
        """The parent holds the lock of its groups, as while it decodes, when it forks."""
        dataset = Dataset(parquet)
        with dataset.file._kept._held.lock:  # type: ignore[union-attr]
            child = os.fork()
            if child == 0:
                os._exit(0 if len(dataset[5]) else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    def test_an_error_is_raised_in_all_waiting_threads_and_the_group_is_tried_again(
        self, parquet: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dataset, begun, go = Dataset(parquet), threading.Event(), threading.Event()
        decode = GroupedFile.decode

        def fail(self: GroupedFile, group: int) -> Any:
            begun.set()
            assert go.wait(PATIENCE)
            raise ParioError("no")

        monkeypatch.setattr(GroupedFile, "decode", fail)
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(dataset.__getitem__, 0)
            assert begun.wait(PATIENCE)
            second = pool.submit(dataset.__getitem__, 1)
            go.set()
            for one in (first, second):
                with pytest.raises(ParioError, match="no"):
                    one.result(PATIENCE)
        monkeypatch.setattr(GroupedFile, "decode", decode)
        assert len(dataset[0])

    def test_a_file_that_changed_is_an_error(self, parquet: Path) -> None:
        dataset = Dataset(parquet)
        held = pickle.dumps(dataset.file)
        assert records("index", parquet) == 0
        write_parquet(parquet, (3, 4))
        with pytest.raises(OSError, match="modified since it was opened"):
            dataset[0]
        with pytest.raises(OSError, match="modified since it was opened"):
            pickle.loads(held)
        with pytest.raises(OSError, match="since it was indexed"):
            Dataset(parquet)
        assert records("index", parquet, "--update") == 0
        assert len(Dataset(parquet)) == 7

    def test_a_file_that_changes_while_it_is_decoded_is_an_error(self, parquet: Path) -> None:
        pieces = GroupedFile.pieces(Dataset(parquet).file, 0)  # type: ignore[arg-type]
        next(pieces)
        os.utime(parquet, (1, 1))
        with pytest.raises(OSError, match="modified since it was opened"):
            list(pieces)

    def test_an_empty_file(self, tmp_path: Path) -> None:
        path = write_parquet(tmp_path / "none.parquet", (1,))
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.parquet.read_table(path).slice(0, 0), path)
        assert records("index", path) == 0
        assert len(Dataset(path)) == 0 and list(Dataset(path)) == [] and Dataset(path)[:] == []
        assert list(Loader(Dataset(path), 4, shuffle=True)) == []

    def test_columns_are_of_parquet_and_named(self, parquet: Path, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_bytes(b"one\n")
        for path, column, words in (
            (parquet, "none", "expected one of id, text, image, more"),
            (tmp_path / "a.txt", "a", "only records of"),
        ):
            with pytest.raises(ParioError, match=words):
                Dataset(path, column=column)[0]
        with pytest.raises(ParioError, match="column id holds int"):
            Dataset(parquet, column="id")[0]


def nth(task: tuple[Dataset, int]) -> bytes:
    return bytes(task[0][task[1]])


class TestArrayRecord:
    @pytest.mark.system
    @pytest.mark.parametrize(
        "options",
        [
            "group_size:1",
            "group_size:7",
            "group_size:1000",
            "group_size:5,pad_to_block_boundary:true",
            "group_size:9,uncompressed",
        ],
    )
    def test_records_equal_the_written_ones(self, tmp_path: Path, options: str) -> None:
        """Some chunks are longer than the format's blocks, so that block headers interrupt chunk
        headers."""
        expected = [random.Random(number).randbytes(number * 37 % 5000) for number in range(300)]
        path = write_array_record(tmp_path / "a.arrayrecord", expected, options)
        for _ in range(2):
            dataset = Dataset(path)
            size = int(options.split(",")[0].split(":")[1])
            assert np.diff(dataset.file.groups.firsts).tolist() == [
                min(size, 300 - begin) for begin in range(0, 300, size)
            ]  # type: ignore[union-attr]
            assert list(map(bytes, dataset)) == expected
            assert list(map(bytes, dataset[[299, 3, 3, 100]])) == [
                expected[number] for number in (299, 3, 3, 100)
            ]
            assert records("index", path) == 0
        assert convert(path) == expected and records("verify", path) == 0
        loaded = [bytes(record) for batch in Loader(dataset, 32, shuffle=True) for record in batch]
        assert sorted(loaded) == sorted(expected) != loaded
        with multiprocessing.get_context("fork").Pool(2) as processes:
            assert (
                processes.map(nth, [(dataset, number) for number in range(0, 300, 50)])
                == expected[::50]
            )

    def test_chunks_that_claim_too_many_records_are_refused(self, tmp_path: Path) -> None:
        path = write_array_record(
            tmp_path / "a.arrayrecord", [b"one", b"two", b"three"], "group_size:2"
        )
        with path.open("r+b") as file:
            file.seek(Dataset(path).file.groups.begins[0] + 31)  # type: ignore[union-attr]
            file.write(b"\xff")
        with pytest.raises(ParioError, match=r"its chunks have \d+ of 3 records"):
            Dataset(path)

    def test_none(self, tmp_path: Path) -> None:
        path = write_array_record(tmp_path / "a.arrayrecord", [], "group_size:1")
        assert len(Dataset(path)) == 0 and records("index", path) == 0 and len(Dataset(path)) == 0


def test_threads_open_a_file_once(parquet: Path) -> None:
    """Python 3.11 may fail if several threads parse the arrays of restart points."""
    opened = []

    def open_slowly(*arguments: Any) -> Any:
        opened.append(arguments)
        time.sleep(0.05)
        return original(*arguments)

    file = Dataset(parquet).with_typed_rows().file
    assert isinstance(file, GroupedFile)
    original = file.foreign._open
    file.foreign = replace(file.foreign, _open=open_slowly)
    with ThreadPoolExecutor(4) as team:
        rows = [len(one.offsets) - 1 for one in team.map(file.decode, range(len(GROUPS)))]
    assert (tuple(rows), len(opened)) == (GROUPS, 1)


class TestCommands:
    def test_index_stat_head_get_verify(
        self, parquet: Path, capfdbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        assert records("index", parquet) == 0
        assert b"103 records (parquet) in 7 groups" in capfdbinary.readouterr().err
        assert records("stat", parquet) == 0
        assert b"in 7 groups of 0 to 40 records each" in capfdbinary.readouterr().out
        assert records("stat", parquet, "--json") == 0
        (facts,) = json.loads(capfdbinary.readouterr().out)
        assert (facts["records"], facts["groups"], facts["most_records"]) == (COUNT, 7, 40)
        assert (
            0 < facts["bytes"] < parquet.stat().st_size
            and facts["index_bytes"] == Path(f"{parquet}.pidx").stat().st_size
        )
        assert records("head", parquet, "-n", 2) == 0
        assert capfdbinary.readouterr().out.startswith(b"0 (")
        assert records("get", parquet, 9, -1, "--column", "text") == 0
        assert capfdbinary.readouterr().out.decode() == f"zwölf 9zwölf {COUNT - 1}"
        assert records("verify", parquet) == 0

    @pytest.mark.parametrize("action", [("shuffle",), ("split", "--shards", 2), ("merge",)])
    @pytest.mark.parametrize("indexed", [False, True])
    def test_actions_that_copy_records_name_the_conversion(
        self,
        parquet: Path,
        action: tuple[object, ...],
        indexed: bool,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        assert not indexed or records("index", parquet) == 0
        assert records(*action, parquet, "-o", parquet.with_name("out")) == 2
        command = capsys.readouterr().err.rpartition("convert them first: pario ")[2]
        assert not list(parquet.parent.glob("out*"))
        assert main(shlex.split(command)) == 0
        made = parquet.with_suffix(".prec")
        assert records(*action, made, "-o", parquet.with_name("out.prec")) == 0

    def test_damage_is_found(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = write_parquet(
            tmp_path / "a.parquet", (40, 40), compression="none", write_page_checksum=True
        )
        place = Dataset(path).file.groups.begins[1] + 300  # type: ignore[union-attr]
        with path.open("r+b") as file:
            file.seek(place)
            byte = file.read(1)
            file.seek(place)
            file.write(bytes([byte[0] ^ 255]))
        assert records("verify", path) == 1
        assert "record 40: " in capsys.readouterr().out
        assert len(Dataset(path)[39])
        with pytest.raises(ParioError, match="record 4"):
            list(Loader(Dataset(path), 10))
        loader = Loader(Dataset(path), 10, errors="skip")
        assert sum(map(len, loader)) == 40 and loader.stats.skipped == 40

    def test_an_index_that_is_damaged_is_named(self, parquet: Path) -> None:
        assert records("index", parquet) == 0
        index = Path(f"{parquet}.pidx")
        whole = bytearray(index.read_bytes())
        whole[300] ^= 1
        index.write_bytes(whole)
        with pytest.raises(OSError, match="make it anew with pario records index"):
            Dataset(parquet)

    def test_a_package_that_is_missing_is_named(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "a.parquet").write_bytes(b"PAR1")
        monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
        assert records("index", tmp_path / "a.parquet") == 2
        assert "pip install pyarrow" in capsys.readouterr().err


def numbers(loader: Loader) -> list[int]:
    """Returns the record numbers of the rest of the epoch, which are also stored in the records."""
    batches = list(loader)
    found = [json.loads(bytes(record))["id"] for batch in batches for record in batch]
    assert found == [number for batch in batches for number in batch.numbers.tolist()]
    return found


@pytest.fixture
def several(tmp_path: Path) -> list[Dataset]:
    """Three files whose records are numbered consecutively."""
    groups = ((20, 3, 30), (50,), (1, 1, 40, 10))
    firsts = np.cumsum([0, *map(sum, groups)]).tolist()
    return [
        Dataset(write_parquet(tmp_path / f"{k}.parquet", each, firsts[k]))
        for k, each in enumerate(groups)
    ]


class TestLoader:
    def test_in_order_each_group_is_decoded_once(
        self, several: list[Dataset], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen = decoding(monkeypatch)
        assert numbers(Loader(several, 8, memory=1)) == list(range(155))
        assert len(seen) == 8

    def test_a_rank_decodes_only_groups_with_records_of_its_own(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dataset, seen = (
            Dataset(write_parquet(tmp_path / "a.parquet", (1,) * 30)),
            decoding(monkeypatch),
        )
        assert (
            numbers(Loader(dataset, 5, rank=1, world=3))
            == sorted(seen)
            == [*range(5, 10), *range(20, 25)]
        )

    def test_the_next_batch_is_decoded_ahead_however_small_groups_are(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dataset, seen = (
            Dataset(write_parquet(tmp_path / "a.parquet", (1,) * 40)),
            decoding(monkeypatch),
        )
        running = iter(Loader(dataset, 8, prefetch=1))
        for _ in range(2):
            next(running)
        wait_until(lambda: len(seen) >= 24, "24 groups that are decoded")

    @pytest.mark.parametrize("groups", [None, 1, 3])
    def test_shuffled_each_group_is_decoded_once_an_epoch(
        self, several: list[Dataset], groups: int | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen = decoding(monkeypatch)
        loader = Loader(several, 8, shuffle=True, seed=7, groups=groups, memory=1)
        first, second = numbers(loader), numbers(loader)
        assert (
            sorted(first) == sorted(second) == list(range(155))
            and first != second
            and len(seen) == 16
        )
        other = Loader(several, 3, shuffle=True, seed=7, groups=groups, prefetch=1)
        assert [numbers(other), numbers(other)] == [first, second]

    def test_mixed_groups_lie_together_in_the_order(self, several: list[Dataset]) -> None:
        bounds = [0, 20, 23, 53, 103, 104, 105, 145, 155]
        found = numbers(Loader(several, 8, shuffle=True, groups=1))
        groups = np.searchsorted(bounds, found, side="right") - 1
        assert 1 + np.count_nonzero(np.diff(groups)) == 8
        inside = [number for number in found if 53 <= number < 103]
        assert inside != sorted(inside)

    def test_a_full_permutation_equals_that_of_other_formats_and_its_cost_is_reported(
        self, several: list[Dataset], tmp_path: Path
    ) -> None:
        with pytest.warns(UserWarning, match="about 19 records decoded"):
            loader = Loader(several, 8, shuffle=True, seed=3, groups=0)
        np.zeros(155, dtype="u1").tofile(tmp_path / "plain")
        plain = Loader(Dataset(tmp_path / "plain", format="fixed", size=1), 8, shuffle=True, seed=3)
        assert numbers(loader) == [number for batch in plain for number in batch.numbers.tolist()]

    def test_groups_of_one_record_cost_nothing_to_permute(self, tmp_path: Path) -> None:
        dataset = Dataset(write_parquet(tmp_path / "a.parquet", (1,) * 20))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert sorted(numbers(Loader(dataset, 4, shuffle=True))) == list(range(20))
        assert Loader(dataset, shuffle=True).state_dict()["order"][0] == "shuffled"

    @pytest.mark.parametrize("how", [{"blocks": (10, 2)}, {"interleave": (2, 4)}])
    def test_other_orders_are_as_of_other_formats(
        self, several: list[Dataset], how: dict[str, Any], tmp_path: Path
    ) -> None:
        plain = []
        for number, one in enumerate(several):
            np.zeros(len(one), dtype="u1").tofile(tmp_path / str(number))
            plain.append(Dataset(tmp_path / str(number), format="fixed", size=1))
        expected = [
            number for batch in Loader(plain, 8, seed=2, **how) for number in batch.numbers.tolist()
        ]
        assert numbers(Loader(several, 8, seed=2, **how)) == expected

    @pytest.mark.parametrize("how", [{}, {"shuffle": True, "groups": 2}, {"blocks": (10, 2)}])
    def test_resumes_anywhere_on_any_number_of_ranks(
        self, several: list[Dataset], how: dict[str, Any]
    ) -> None:
        chance = random.Random(1)
        expected, seen = numbers(Loader(several, 10, seed=5, **how)), []
        state = Loader(several, seed=5, **how).state_dict()
        while state["epoch"] == 0:
            world, batch = chance.randint(1, 4), chance.randint(1, 20)
            loaders = [
                Loader(several, batch, rank=rank, world=world, remainder="exact", **how)
                for rank in range(world)
            ]
            for loader in loaders:
                loader.load_state_dict(json.loads(json.dumps(state)))
            running = [iter(loader) for loader in loaders]
            for _ in range(chance.randint(1, 4)):
                steps = [next(each, None) for each in running]
                seen += [
                    number for got in steps if got is not None for number in got.numbers.tolist()
                ]
            state = max(
                (loader.state_dict() for loader in loaders),
                key=lambda one: (one["epoch"], one["position"]),
            )
        assert seen == expected

    @pytest.mark.parametrize("remainder", ["pad", "drop", "exact"])
    @pytest.mark.parametrize("how", [{}, {"shuffle": True, "groups": 2}, {"blocks": (10, 2)}])
    def test_ranks_divide_the_order_of_one_process(
        self, several: list[Dataset], how: dict[str, Any], remainder: str
    ) -> None:
        order = numbers(Loader(several, seed=5, **how))
        for world in (2, 8):
            loaders = [
                Loader(several, 8, seed=5, rank=rank, world=world, remainder=remainder, **how)
                for rank in range(world)
            ]
            lengths = [len(loader) for loader in loaders]
            ranks = [[batch.numbers.tolist() for batch in loader] for loader in loaders]
            assert lengths == [len(batches) for batches in ranks]
            found = [
                number
                for step in zip_longest(*ranks, fillvalue=())
                for batch in step
                for number in batch
            ]
            assert list(dict.fromkeys(found)) == (
                order[: 155 - 155 % world] if remainder == "drop" else order
            )

    def test_another_process_continues_a_pickled_loader(self, several: list[Dataset]) -> None:
        loader = Loader(several, 8, shuffle=True, groups=2)
        loader.load_state_dict({**loader.state_dict(), "position": 24})
        copy = pickle.loads(pickle.dumps(loader))
        assert numbers(copy) == numbers(loader)

    def test_state_of_other_groups_is_refused(self, tmp_path: Path) -> None:
        loaders = [
            Loader(
                Dataset(write_parquet(tmp_path / f"{k}.parquet", groups)), shuffle=True, groups=1
            )
            for k, groups in enumerate([(5, 6), (6, 5)])
        ]
        with pytest.raises(ParioError, match="order were"):
            loaders[0].load_state_dict(loaders[1].state_dict())

    def test_how_many_are_mixed_follows_their_bytes(
        self, several: list[Dataset], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert Loader(several, shuffle=True).whole_order()[2] == 8
        monkeypatch.setattr("pario.records.group_loader._MIXED", 1)
        assert Loader(several, shuffle=True).whole_order()[2] == 1

    def test_an_abandoned_iteration_ends(self, several: list[Dataset]) -> None:
        before = threading.active_count()
        running = iter(Loader(several, 8, shuffle=True))
        next(running)
        del running
        for thread in threading.enumerate():
            if thread.name.startswith("pario-decode"):
                thread.join(PATIENCE)
        assert threading.active_count() == before

    def test_a_child_of_a_fork_drops_the_iteration_and_begins_its_own(
        self, several: list[Dataset]
    ) -> None:
        held = [iter(Loader(several, 8, shuffle=True))]
        taken = len(next(held[0]))
        expect_child_begins_its_own(
            held, lambda: sorted(numbers(Loader(several, 8, shuffle=True))) == list(range(155))
        )
        assert taken + sum(map(len, held[0])) == 155

    def test_transforms_and_workers(self, several: list[Dataset]) -> None:
        found = [n for batch in Loader(several, 8, transform=len, workers=2) for n in batch]
        assert found == [len(record) for one in several for record in one]

    def test_unsuitable_options_are_refused(self, several: list[Dataset], tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_bytes(b"one\n")
        lines = Dataset(tmp_path / "a.txt")
        with pytest.raises(
            ParioError, match="expected no other formats with it; pario records convert"
        ):
            Loader([several[0], lines])
        for datasets, how in (
            (lines, {"shuffle": True, "groups": 1}),
            (several, {"groups": 1}),
            (several, {"shuffle": True, "groups": -1}),
        ):
            with pytest.raises(
                ParioError, match=r"groups=.*expected (0 to|at least 0, with shuffle)"
            ):
                Loader(datasets, **how)  # type: ignore[arg-type]

    @pytest.mark.system
    def test_torch(self, several: list[Dataset]) -> None:
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        loader = Loader(several, 10, shuffle=True)
        loaded = torch.utils.data.DataLoader(
            loader.torch(), None, num_workers=2, persistent_workers=True, collate_fn=_numbers
        )
        alone = Loader(several, 10, shuffle=True)
        first, second = ([batch.numbers.tolist() for batch in alone] for _ in range(2))
        assert list(loaded) == first
        assert list(islice(iter(loaded), 4)) == second[:4]
        loader.load_state_dict(loader.torch().state_after(4))
        assert list(loaded) == second[4:]
        rows = torch.utils.data.DataLoader(several[0].torch(), batch_size=None, num_workers=2)
        assert [json.loads(bytes(one.numpy()))["id"] for one in rows] == list(range(53))


def _numbers(batch: Any) -> list[int]:
    return batch.numbers.tolist()  # type: ignore[no-any-return]
