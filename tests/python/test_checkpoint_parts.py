"""Checkpoints in several files: they load like those in one file, HDF5 programs see one file, and a
merge makes one file."""

import os
import shutil
from pathlib import Path
from unittest import mock

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pario import checkpoint
from pario.checkpoint import CheckpointError, Writer, block, container, load, shared
from pario.checkpoint.geometry import whole
from pario.checkpoint.header import read_header
from pario.checkpoint.merge import merge
from pario.checkpoint.parts import groups
from pario.checkpoint.store import Store
from pario.cli import main
from pario.ranks import OneRank
from tests.python.support import threads
from tests.python.test_checkpoint import ARRAYS, GRID, part, same
from tests.python.test_checkpoint_geometry import tilings
from tests.support.commands import run_command

FORMS = (2, 3, "node", "rank")


@pytest.fixture(autouse=True, scope="module")
def _no_small_arrays():
    """Treats no array as small, so that each rank writes its own blocks."""
    with mock.patch.object(container, "LARGE", 0):
        yield


def save(path: Path, files, ranks: int = 4, steps=(1,)) -> None:
    """Saves a grid and one value of each other kind."""

    def program(ranks):
        with Writer(ranks, path, files=files, durable=False) as writer:
            for step in steps:
                arrays = {
                    "flow/T": part(
                        GRID + step,
                        ranks,
                        dims=("z", "y", "x"),
                        units="K",
                        attrs={"scale": np.float32(2.5), "note": None},
                    ),
                    "x": checkpoint.replicated(np.arange(10.0), dims=("x",)),
                    "rank": checkpoint.per_rank(ranks.rank),
                    "label": "été",
                }
                writer.save(step, arrays, {"time": step / 2, "nested": {"a": [1]}})

    threads.run(ranks, program)


def merge_on_ranks(path: Path, output: Path | None = None, ranks: int = 2) -> list[object]:
    return threads.run(
        ranks, lambda ranks: merge(ranks, lambda: read_header(path), output, threads=2)
    )


@pytest.mark.system
@given(
    st.dictionaries(st.sampled_from(("T", "flow/u", "names")), ARRAYS, min_size=1),
    st.sampled_from(FORMS),
    st.data(),
)
@settings(max_examples=25)
def test_saved_arrays_are_loaded_shown_and_merged(tmp_path_factory, arrays, files, data):
    path = tmp_path_factory.mktemp("ckpt")
    saving, loading = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    boxes = {name: data.draw(tilings(array.shape)) for name, array in arrays.items()}

    def store(ranks):
        given = {
            name: checkpoint.blocks(
                [
                    (array[box.within(whole(array.shape))], box.begin)
                    for box in boxes[name][ranks.rank :: ranks.size]
                ],
                array.shape,
            )
            for name, array in arrays.items()
        }
        with Writer(ranks, path, files=files, durable=False) as writer:
            writer.save(2, given)
            return writer.save(3, given)  # reuses the layout of the previous save

    def restore(ranks):
        state = load(ranks, path)
        shares = {
            name: checkpoint.divide(array.shape, ranks.size, ranks.rank)
            for name, array in arrays.items()
        }
        return {
            name: (box, state.read(name, box.begin, box.shape), state[name])
            for name, box in shares.items()
        }

    with mock.patch.object(container, "LARGE", data.draw(st.sampled_from((0, 100)))):
        assert threads.run(saving, store) == [path / "step-00000003"] * saving
    for found in threads.run(loading, restore):
        for name, array in arrays.items():
            box, piece, full = found[name]
            assert same(array, full)
            assert same(array[box.within(whole(array.shape))], piece)
    assert merge_on_ranks(path / "step-00000003", path / "one.h5") == [path / "one.h5"] * 2
    with h5py.File(path / "latest") as master, h5py.File(path / "one.h5") as one:
        for name in arrays:
            assert master[name].dtype == one[name].dtype and not one[name].is_virtual
            assert master[name][...].tobytes() == one[name][...].tobytes()
    assert all(same(array, load(None, path / "one.h5")[name]) for name, array in arrays.items())


def test_ranks_are_grouped_by_number_and_by_host():
    hosts = ["b", "b", "a", "a", "b"]
    assert [groups(files, hosts) for files in (2, 9, "node", "rank")] == [
        [0, 0, 0, 1, 1],
        [0, 1, 2, 3, 4],
        [0, 0, 1, 1, 0],
        [0, 1, 2, 3, 4],
    ]


@pytest.mark.parametrize("files", [0, -2, "host", 2.5])
def test_an_invalid_number_of_files_is_an_error_that_names_the_expectation(tmp_path, files):
    with pytest.raises(
        CheckpointError, match=r"files=.*; expected a number from 1 on, 'node' or 'rank'"
    ):
        Writer(None, tmp_path, files=files)


def test_parts_move_and_are_copied_as_a_whole(tmp_path):
    save(tmp_path / "a", 2)
    shutil.copytree(tmp_path / "a" / "step-00000001", tmp_path / "b" / "elsewhere")
    shutil.rmtree(tmp_path / "a")
    for path in ("elsewhere", "elsewhere/master.h5"):
        assert (load(None, tmp_path / "b" / path)["flow/T"] == GRID + 1).all()
    with h5py.File(tmp_path / "b" / "elsewhere" / "master.h5") as file:
        assert (file["flow/T"][...] == GRID + 1).all()
        assert [scale[0].name for scale in file["flow/T"].dims] == ["/z", "/y", "/x"]
        assert file["flow/T"].attrs["units"] == "K" and file.attrs["time"] == 0.5
    master = tmp_path / "b/elsewhere/master.h5"
    shown = run_command(["h5dump", "-d", "/flow/T", "-s", "5,7,9", "-c", "1,1,1", master])
    assert "(5,7,9): 480" in shown.stdout


def test_hdf5_replaces_nothing_in_names_with_percent_signs(tmp_path):
    with Writer(None, tmp_path, files="rank", durable=False) as writer:
        writer.save(1, {"50%b T": block(GRID, GRID.shape, (0, 0, 0))})
    with h5py.File(tmp_path / "latest") as file:
        assert (file["50%b T"][...] == GRID).all()
    assert (load(None, tmp_path)["50%b T"] == GRID).all()


@pytest.mark.parametrize("harm", ["removed", "cut"])
def test_a_checkpoint_without_one_of_its_parts_is_skipped_by_name(tmp_path, harm):
    save(tmp_path, "rank", steps=(1, 2))
    lost = tmp_path / "step-00000002" / "part-00003.h5"
    if harm == "cut":
        os.truncate(lost, 100)
    else:
        lost.unlink()
    with pytest.warns(UserWarning, match="part-00003.h5 (is not there|has 100 bytes of)"):
        state = load(None, tmp_path)
    assert state.step == 1 and (state["flow/T"] == GRID + 1).all()


def test_a_repeated_save_of_a_step_replaces_the_earlier_one(tmp_path):
    for files in (2, "rank", 1, 2):
        with Writer(None, tmp_path, files=files, durable=False) as writer:
            for number in range(2):
                writer.save(1, {"T": block(GRID + number, GRID.shape, (0, 0, 0))})
        assert len(list(tmp_path.glob("step*"))) == 1
        assert (load(None, tmp_path)["T"] == GRID + 1).all()


def test_after_an_interrupted_replacement_the_earlier_checkpoint_is_loaded(tmp_path):
    save(tmp_path, 2)
    (tmp_path / "step-00000001").rename(tmp_path / "step-00000001.old")
    (tmp_path / "step-00000001.part").mkdir()
    with pytest.warns(UserWarning, match="step-00000001.part: not finished"):
        assert (load(None, tmp_path)["flow/T"] == GRID + 1).all()
    with Writer(None, tmp_path, files=2, durable=False) as writer:
        writer.save(1, {"T": block(GRID, GRID.shape, (0, 0, 0))})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "MANIFEST",
        "latest",
        "step-00000001",
    ]


def test_only_the_newest_are_kept_with_all_their_parts(tmp_path):
    (tmp_path / "step-00000009.gone").mkdir()  # left by a Writer that was killed during a removal
    (tmp_path / "step-5").mkdir()  # not a directory of pario
    save(tmp_path, "rank", steps=(1, 2, 3))
    store = Store(tmp_path)
    assert [path.name for path in store.prune(lambda found: found[:-1])] == [
        "step-00000001",
        "step-00000002",
    ]
    store.await_removal()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "MANIFEST",
        "latest",
        "step-00000003",
        "step-5",
    ]
    assert (tmp_path / "latest").readlink() == Path("step-00000003/master.h5")


def test_a_failing_save_leaves_no_files(tmp_path):
    def program(ranks):
        with Writer(ranks, tmp_path, files="rank", durable=False) as writer:
            writer.save(1, {"T": part(GRID, ranks)})
            writer.save(2, {"T": part(GRID, ranks), "seed": ranks.rank})

    assert {str(one) for one in threads.run(3, program)} == {
        "array 'seed': not the same on rank 1-2 as on rank 0"
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "MANIFEST",
        "latest",
        "step-00000001",
    ]


def test_small_arrays_are_in_the_master(tmp_path, monkeypatch):
    monkeypatch.setattr(container, "LARGE", 1000)
    save(tmp_path, "rank", steps=(1, 2))
    with (
        h5py.File(tmp_path / "latest") as master,
        h5py.File(tmp_path / "step-00000002" / "part-00001.h5") as second,
    ):
        assert [name for name in ("flow/T", "x", "rank", "label") if master[name].is_virtual] == [
            "flow/T"
        ]
        assert list(second) == ["flow"]
    state = load(None, tmp_path)
    assert (state["flow/T"] == GRID + 2).all() and state["rank"].tolist() == [0, 1, 2, 3]


def test_async_in_parts(tmp_path):
    def program(ranks):
        with Writer(ranks, tmp_path, files=2, durable=False, in_flight=2) as writer:
            for step in range(4):
                writer.save_async(step, {"T": part(GRID + step, ranks)})

    threads.run(3, program)
    assert all((load(None, tmp_path, step=step)["T"] == GRID + step).all() for step in range(4))


def test_a_merge_in_place_keeps_the_order_of_checkpoints(tmp_path):
    save(tmp_path, "rank", steps=(1, 2, 3))
    assert merge_on_ranks(tmp_path / "step-00000002") == [tmp_path / "step-00000002.h5"] * 2
    assert [found.path.name for found in Store(tmp_path).complete()] == [
        "step-00000001",
        "step-00000002.h5",
        "step-00000003",
    ]
    assert load(None, tmp_path).step == 3 and (tmp_path / "latest").readlink() == Path(
        "step-00000003/master.h5"
    )
    with pytest.raises(CheckpointError, match="is one file of format 2 already"):
        merge(OneRank(), lambda: read_header(tmp_path / "step-00000002.h5"))


def test_merging_keeps_attributes_axes_and_checksums(tmp_path):
    save(tmp_path, 3)
    merge_on_ranks(tmp_path / "step-00000001", tmp_path / "one.h5")
    with h5py.File(tmp_path / "latest") as master, h5py.File(tmp_path / "one.h5") as one:
        for name in ("/", "pario", "flow/T", "x", "rank", "label"):
            kept = {
                key: master[name].attrs[key]
                for key in master[name].attrs
                if key not in ("DIMENSION_LIST", "REFERENCE_LIST")
            }
            assert kept == {key: one[name].attrs[key] for key in kept}, name
            assert {key: master[name].attrs.get_id(key).dtype for key in kept} == {
                key: one[name].attrs.get_id(key).dtype for key in kept
            }
        assert [scale[0].name for scale in one["flow/T"].dims] == ["/z", "/y", "/x"]
        assert (one["pario/checksums"][...] == master["pario/checksums"][...]).all()


def test_merging_names_damaged_blocks_and_leaves_the_parts(tmp_path):
    save(tmp_path, "rank")
    with h5py.File(tmp_path / "step-00000001" / "part-00002.h5", "r+") as file:
        file["flow/T/2"][0, 0, 0] = -1
    told = {str(one) for one in merge_on_ranks(tmp_path / "step-00000001")}
    assert (
        len(told) == 1
        and "array 'flow/T': [0:6, 4:8, 0:5], saved by rank 2, is not what was saved" in told.pop()
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "MANIFEST",
        "latest",
        "step-00000001",
    ]


def test_the_commands_know_checkpoints_in_parts(tmp_path, capsys):
    save(tmp_path, 2, steps=(1, 2))
    assert main(["checkpoint", "ls", str(tmp_path)]) == 0
    assert [line.split()[5:] for line in capsys.readouterr().out.splitlines()] == [
        ["step-00000001"],
        ["step-00000002"],
    ]
    for arguments in (
        ["verify", str(tmp_path), "--all"],
        ["show", str(tmp_path)],
        ["diff", str(tmp_path), str(tmp_path / "latest")],
    ):
        assert main(["checkpoint", *arguments]) == 0
    assert main(["checkpoint", "merge", str(tmp_path), "-o", str(tmp_path / "one.h5")]) == 0
    assert capsys.readouterr().out.endswith(f"{tmp_path}/one.h5\n")
    assert main(["checkpoint", "diff", str(tmp_path), str(tmp_path / "one.h5")]) == 0
    assert main(["checkpoint", "diff", str(tmp_path), str(tmp_path / "step-00000001")]) == 1
    assert main(["checkpoint", "merge", str(tmp_path / "one.h5")]) == 2
    with pytest.raises(SystemExit):
        main(["checkpoint", "merge", str(tmp_path), "--threads", "0"])


@pytest.mark.parametrize("most", [7, 100, 10**6])
@pytest.mark.parametrize("ranks", [1, 3])
def test_shares_of_ranks_make_up_an_array_in_parts(tmp_path, most, ranks):
    """Each rank reads a share of an array that all ranks need; MPI would exchange the shares."""
    save(tmp_path, 3)
    header = read_header(tmp_path / "step-00000001")
    entry = header.entries["flow/T"]
    found = np.zeros_like(GRID)
    for window in shared._windows(entry.extents, most):
        size = sum(box.size for _, box in window)
        assert size <= most
        flat = np.empty(size)
        for rank in range(ranks):
            for file, moves in shared._share(
                window, flat, size * rank // ranks, size * (rank + 1) // ranks
            ).items():
                shared.transfer.read(header.file(file), moves)
        shared._copy_window(window, flat, found)
    assert (found == GRID + 1).all()
