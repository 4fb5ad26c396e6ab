"""Checkpoints are loaded bit by bit in any decomposition; errors name array, rank and extent on
every rank."""

import gc
import os
import re
import resource
import signal
from pathlib import Path
from unittest import mock

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as some_numpy

from pario import checkpoint
from pario.checkpoint import CheckpointError, Writer, block, container, exchange, load, transfer
from pario.checkpoint.geometry import Box, whole
from tests.python.support import threads
from tests.python.test_checkpoint_geometry import tilings
from tests.support.commands import run_command
from tests.support.waiting import PATIENCE

GRID = np.arange(6 * 8 * 10, dtype="f8").reshape(6, 8, 10)


def save(path: Path, step: int, arrays, attrs=None, **options) -> Path:
    with Writer(None, path, durable=False, **options) as writer:
        return writer.save(step, arrays, attrs)


def part(array: np.ndarray, ranks, **options) -> checkpoint.arrays.Saved:
    """Returns the even share of a rank."""
    box = checkpoint.divide(array.shape, ranks.size, ranks.rank)
    return block(array[box.within(whole(array.shape))], array.shape, box.begin, **options)


TYPES = st.one_of(
    some_numpy.integer_dtypes(endianness="?"),
    some_numpy.unsigned_integer_dtypes(endianness="?"),
    some_numpy.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
    some_numpy.complex_number_dtypes(endianness="?", sizes=(64, 128)),
    some_numpy.boolean_dtypes(),
    some_numpy.byte_string_dtypes(min_len=1, max_len=9),
    some_numpy.unicode_string_dtypes(min_len=1, max_len=5),
    some_numpy.datetime64_dtypes(max_period="Y", min_period="ns"),
    st.just(
        np.dtype(
            [("id", "<u4"), ("place", "<f8", (3,)), ("inner", [("flag", "?"), ("name", "S3")])]
        )
    ),
)
ARRAYS = TYPES.flatmap(
    lambda kind: some_numpy.arrays(
        kind, some_numpy.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6)
    )
)


def same(one: np.ndarray, other: np.ndarray) -> bool:
    return (
        one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    )


def test_strings_with_lone_surrogates_are_kept(tmp_path):
    """As os.listdir gives names of files that are not UTF-8."""
    names = np.array([os.fsdecode(b"\xff.txt"), "\ud800", "é"])
    save(tmp_path, 1, {"names": names})
    (kept,) = threads.run(1, lambda ranks: load(ranks, tmp_path)["names"])
    assert kept.tolist() == names.tolist()


@pytest.mark.system
@given(
    st.dictionaries(st.sampled_from(("T", "flow/u", "flow/v", "names")), ARRAYS, min_size=1),
    st.data(),
)
@settings(max_examples=60)
def test_saved_arrays_are_loaded_in_any_decomposition(tmp_path_factory, arrays, data):
    path = tmp_path_factory.mktemp("ckpt")
    saving, loading = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    boxes = {name: data.draw(tilings(array.shape)) for name, array in arrays.items()}
    wanted = {name: data.draw(tilings(array.shape)) for name, array in arrays.items()}

    def mine(ranks, name):
        return [box for number, box in enumerate(boxes[name]) if number % ranks.size == ranks.rank]

    def store(ranks):
        parts = {
            name: checkpoint.blocks(
                [(array[box.within(whole(array.shape))], box.begin) for box in mine(ranks, name)],
                array.shape,
            )
            for name, array in arrays.items()
        }
        with Writer(ranks, path, durable=False) as writer:
            return writer.save(3, parts)

    def restore(ranks):
        state = load(ranks, path)
        pieces = {name: {} for name in arrays}
        for name, those in wanted.items():
            for turn in range(0, len(those), ranks.size):
                box = (
                    those[turn + ranks.rank]
                    if turn + ranks.rank < len(those)
                    else Box((0,) * arrays[name].ndim, (0,) * arrays[name].ndim)
                )
                if arrays[name].ndim or turn + ranks.rank < len(those):
                    pieces[name][box] = state.read(name, box.begin, box.shape)
                else:
                    state.read(name, (), ())
        return pieces, {name: state[name] for name in arrays}

    with mock.patch.object(
        container, "LARGE", data.draw(st.sampled_from((0, 100, container.LARGE)))
    ):
        assert threads.run(saving, store) == [path / "step-00000003.h5"] * saving
    for pieces, full in threads.run(loading, restore):
        for name, array in arrays.items():
            assert same(array, full[name])
            for box, piece in pieces[name].items():
                assert same(array[box.within(whole(array.shape))], piece)


def test_a_state_is_restored_unchanged(tmp_path):
    attrs = {
        "time": 0.5,
        "steps": 7,
        "on": True,
        "name": "été",
        "none": None,
        "nested": {"a": [1, "b"]},
        "odd": "json:x",
        "list": [1, 2.5],
    }
    save(
        tmp_path, 12, {"T": GRID, "seed": 2**63, "label": "été"}, {**attrs, "vector": np.arange(3)}
    )
    state = load(None, tmp_path)
    assert (state.step, list(state), state.skipped) == (12, ["T", "seed", "label"], [])
    assert (state.attrs.pop("vector") == np.arange(3)).all()
    assert state.attrs == attrs
    assert (int(state["seed"]), str(state["label"])) == (2**63, "été")
    assert state.about["ranks"] == 1 and state.about["pario"] and state.about["saved"]


def test_programs_that_know_hdf5_read_the_file(tmp_path):
    path = save(
        tmp_path,
        1,
        {
            "T": block(GRID, GRID.shape, (0, 0, 0), dims=("z", "y", "x"), units="K"),
            "x": checkpoint.replicated(np.arange(10.0), dims="x"),
        },
    )
    with h5py.File(path) as file:
        assert (file["T"][...] == GRID).all()
        assert file["T"].attrs["units"] == "K"
        assert [file["T"].dims[axis][0].name for axis in range(3)] == ["/z", "/y", "/x"]
        assert file.attrs["step"] == 1
    shown = run_command(["h5dump", "-d", "/T", "-s", "5,7,9", "-c", "1,1,1", path], status=0).stdout
    assert "(5,7,9): 479" in shown


def test_a_file_of_another_program_is_loaded(tmp_path):
    path = tmp_path / "other.h5"
    with h5py.File(path, "w") as file:
        file["plain"] = GRID
        file.create_dataset("packed", data=GRID, chunks=(2, 2, 2), compression="gzip")
        file.attrs["time"] = 2.0
        file["plain"].attrs["units"] = "K"
        file["group/nothing"] = h5py.Empty("f8")
    state = load(None, path)
    assert (state.attrs, sorted(state)) == ({"time": 2.0}, ["group/nothing", "packed", "plain"])
    assert (state.array_attrs("plain"), state.array_attrs("packed")) == ({"units": "K"}, {})
    assert state.shape("group/nothing") == (0,)
    assert all(
        (state.read(name, (1, 2, 3), (2, 2, 2)) == GRID[1:3, 2:4, 3:5]).all()
        for name in ("packed", "plain")
    )


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_next_checkpoint_is_made_like_the_one_before(tmp_path, ranks):
    """The layout is reused, but the new file has arrays and attributes of its own."""

    def program(ranks):
        with Writer(ranks, tmp_path, durable=False) as writer:
            for step in range(4):
                attrs = {"time": step / 2, **({"only": "x" * 1000} if step == 1 else {})}
                writer.save(
                    step,
                    {"T": part(GRID + step, ranks), "rank": checkpoint.per_rank(ranks.rank + step)},
                    attrs,
                )

    threads.run(ranks, program)
    for step in range(4):
        state = load(None, tmp_path, step=step)
        assert (state["T"] == GRID + step).all()
        assert state["rank"].tolist() == [rank + step for rank in range(ranks)]
        assert state.attrs["time"] == step / 2 and ("only" in state.attrs) == (step == 1)


def test_ghost_cells_stay_out(tmp_path):
    def program(ranks):
        box = checkpoint.divide((12, 5), ranks.size, ranks.rank)
        field = np.full((box.shape[0] + 2, box.shape[1] + 2), -1.0)
        field[1:-1, 1:-1] = np.arange(60.0).reshape(12, 5)[box.within(whole((12, 5)))]
        with Writer(ranks, tmp_path, durable=False) as writer:
            writer.save(0, {"T": block(field[1:-1, 1:-1], (12, 5), box.begin)})
        again = np.zeros_like(field)
        load(ranks, tmp_path).read("T", box.begin, box.shape, out=again[1:-1, 1:-1])
        return (again[1:-1, 1:-1] == field[1:-1, 1:-1]).all() and not again[0].any()

    assert threads.run(3, program) == [True] * 3
    assert (load(None, tmp_path)["T"].reshape(-1) == np.arange(60)).all()


def test_arrays_of_other_types_receive_the_elements_read(tmp_path):
    save(tmp_path, 0, {"T": GRID, "when": np.array(["2026-11-22"], "M8[D]")})
    state = load(None, tmp_path)
    same_type, other, days = np.empty_like(GRID), np.empty_like(GRID, "f4"), np.empty(1, "M8[D]")
    for taker in (same_type, other):
        assert state.read("T", out=taker) is taker
        assert (taker == GRID).all()
    assert (
        state.read_many({"when": None}, {"when": days})["when"] is days
        and str(days[0]) == "2026-11-22"
    )
    with pytest.raises(CheckpointError, match=r"the part has shape \[6, 8, 10\], its target \[3\]"):
        state.read("T", out=np.empty(3))


def errors(tmp_path, size, arrays, step=lambda ranks: 2):
    """Returns the error of each rank when ``arrays(ranks)`` is saved. The checkpoint before it
    stays."""

    def program(ranks):
        with Writer(ranks, tmp_path, durable=False) as writer:
            writer.save(1, {"good": 1})
            writer.save(step(ranks), arrays(ranks))

    found = threads.run(size, program)
    assert all(isinstance(one, Exception) for one in found), found
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "MANIFEST",
        "latest",
        "step-00000001.h5",
    ]
    assert load(None, tmp_path).step == 1
    return [str(one) for one in found]


@pytest.mark.parametrize(
    ("offset", "length", "message"),
    [
        (lambda rank: 2 * rank, 1, "array 'T': no rank has [1:2, 0:3] of [4, 3]"),
        (
            lambda rank: rank,
            2,
            "array 'T': [1:2, 0:3] is given twice, by rank 0 [0:2, 0:3] and rank 1 [1:3, 0:3]",
        ),
        (
            lambda rank: 3 * rank,
            3,
            "rank 1: array 'T': the part [3:6, 0:3] lies outside of the array [0:4, 0:3]",
        ),
    ],
)
def test_blocks_that_do_not_tile(tmp_path, offset, length, message):
    told = errors(
        tmp_path,
        2,
        lambda ranks: {"T": block(np.zeros((length, 3)), (4, 3), (offset(ranks.rank), 0))},
    )
    assert all(message.removeprefix("rank 1: ") in one for one in told)


def test_types_shapes_and_names_that_differ(tmp_path):
    def types(ranks):
        return {"T": block(np.zeros(2, "f4" if ranks.rank else "f8"), (4,), (2 * ranks.rank,))}

    assert (
        errors(tmp_path / "a", 2, types)
        == ["array 'T': type float32 on rank 1, float64 on others"] * 2
    )
    told = errors(tmp_path / "b", 3, lambda ranks: {"T": 1} if ranks.rank != 1 else {})
    assert (
        told
        == [
            "array 'T': given by rank 0, 2, not by rank 1; a rank without a part of it gives an"
            " empty one"
        ]
        * 3
    )
    told = errors(tmp_path / "c", 3, lambda ranks: {"seed": ranks.rank // 2})
    assert told == ["array 'seed': not the same on rank 2 as on rank 0"] * 3


def test_an_error_of_one_rank_is_raised_on_all(tmp_path):
    told = errors(tmp_path, 3, lambda ranks: {"T": object() if ranks.rank == 1 else 1.0})
    assert all("array 'T': elements of type object cannot be saved" in one for one in told)
    assert "rank 1: " in told[0] and "rank 1: " in told[2]


@pytest.mark.parametrize("name", ["", "/T", "T/", "a//b", "./T", "a/./b", "pario/T", "a\0b"])
def test_names_that_hdf5_would_change_are_refused(tmp_path, name):
    assert "such a name cannot be used" in errors(tmp_path, 1, lambda ranks: {name: 1})[0]


def test_arrays_within_arrays_are_refused(tmp_path):
    told = errors(tmp_path, 2, lambda ranks: {"flow": 1, "flows/T": 2, "flow/u/x": 3})
    assert told == ["array 'flow/u/x' cannot be within array 'flow'"] * 2


@pytest.mark.parametrize("name", ["step", "DIMENSION_LIST", "pario_type"])
def test_attributes_that_have_a_meaning_are_refused(tmp_path, name):
    told = errors(
        tmp_path, 1, lambda ranks: {"T": block(GRID, GRID.shape, (0, 0, 0), attrs={name: 3})}
    )
    assert f"attribute '{name}': such a name cannot be used" in told[0]
    with (
        Writer(None, tmp_path / "run", durable=False) as writer,
        pytest.raises(CheckpointError, match=f"attribute '{name}': such a name"),
    ):
        writer.save(5, {"T": 1}, {name: "warm"})


def test_attributes_of_the_next_checkpoint_differ_however_little(tmp_path):
    scales = [np.arange(3000.0), np.arange(3000.0)]
    scales[1][1500] += 1e-9
    with Writer(None, tmp_path, durable=False) as writer:
        for step, scale in enumerate(scales):
            writer.save(step, {"T": block(GRID, GRID.shape, (0, 0, 0), attrs={"scale": scale})})
    assert all(
        (load(None, tmp_path, step=step).array_attrs("T")["scale"] == scale).all()
        for step, scale in enumerate(scales)
    )


def test_batches_of_copies_are_bounded(monkeypatch):
    monkeypatch.setattr(transfer, "_AT_HAND", 100)
    columns = np.zeros((5, 10), "u1")[:, :4]  # 20 bytes each, with ghost cells
    moves = [
        transfer.Move(20 * number, whole((5, 4)), whole((5, 4)), columns) for number in range(12)
    ]
    assert [sum(map(len, together)) for _, together in transfer._batches(moves)] == [100, 100, 40]


def test_a_directory_is_released_when_all_saves_have_ended_also_after_a_failed_one(
    tmp_path, monkeypatch
):
    begun, opened = threads.threading.Event(), threads.threading.Event()
    write = exchange.write_for_all

    def fail_once(path, by_rank, **options):
        if "step-00000001" in path:
            assert begun.wait(PATIENCE)
            raise OSError(28, "No space left on device")
        if "step-00000002" in path:
            assert opened.wait(PATIENCE)
        write(path, by_rank, **options)

    monkeypatch.setattr(container, "LARGE", 0)
    writer = Writer(None, tmp_path, durable=False, in_flight=2)
    writer.save(0, {"T": GRID})
    monkeypatch.setattr(exchange, "write_for_all", fail_once)
    for step in (1, 2):
        writer.save_async(step, {"T": GRID + step})
    begun.set()

    def close():
        with pytest.raises(CheckpointError, match="No space left"):
            writer.close()

    closing = threads.threading.Thread(target=close)
    closing.start()
    closing.join(0.1)
    assert closing.is_alive()
    with pytest.raises(CheckpointError, match="another Writer"):
        Writer(None, tmp_path)
    opened.set()
    closing.join(PATIENCE)
    Writer(None, tmp_path).close()
    assert (load(None, tmp_path)["T"] == GRID + 2).all()


def test_invalid_names_and_offsets_are_reported(tmp_path):
    assert (
        "array 3: expected a name, which is a string"
        in errors(tmp_path, 2, lambda ranks: {3: 1})[1]
    )
    with pytest.raises(CheckpointError, match=r"\[4.5\]: expected whole numbers"):
        block(np.zeros(3), (9,), (4.5,))


def test_a_closed_writer_is_an_error(tmp_path):
    def program(ranks):
        writer = Writer(ranks, tmp_path, durable=False)
        writer.close()
        writer.close()
        for save in (writer.save, writer.save_async):
            with pytest.raises(CheckpointError, match="this Writer is closed"):
                save(1, {"T": 1})

    assert threads.run(2, program) == [None, None]


def test_a_full_disk_is_detected_before_the_first_write(tmp_path):
    huge = np.broadcast_to(np.float64(1), (10**7, 10**7))
    told = errors(
        tmp_path, 2, lambda ranks: {"T": block(huge, (2 * 10**7, 10**7), (ranks.rank * 10**7, 0))}
    )
    assert all(re.search(r"no space: 16\d{14} bytes are needed", one) for one in told)


def test_ranks_that_save_different_steps(tmp_path):
    def program(ranks):
        with Writer(ranks, tmp_path, durable=False) as writer:
            writer.save(5 + ranks.rank, {"T": 1})

    assert {str(one) for one in threads.run(2, program)} == {
        "rank 1 has called save(step 6), rank 0 save(step 5)"
    }
    assert (
        "step -1; expected a number from 0 on"
        in errors(tmp_path, 2, lambda ranks: {}, step=lambda ranks: -1)[0]
    )


@pytest.mark.parametrize("how", ["save", "save_async"])
def test_a_full_disk_leaves_earlier_checkpoints(tmp_path, how):
    """A limit on the size of files stands for a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Writer(None, tmp_path, durable=False) as writer:
        writer.save(1, {"T": np.zeros(100_000)})
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        writer.save(2, {"T": np.ones(100_000)})
        resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, before[1]))
        try:
            with pytest.raises(CheckpointError, match=r"step-00000003\.h5\.part.*File too large"):
                getattr(writer, how)(3, {"T": np.ones(100_000)})
                writer.close()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    state = load(None, tmp_path)
    assert (state.step, state.skipped, state["T"].all()) == (2, [], True)
    assert not list(tmp_path.glob("*.part"))


def test_only_the_newest_are_kept(tmp_path):
    with Writer(None, tmp_path, keep=2, durable=False) as writer:
        for step in (5, 6, 7, 2):  # the program returned to an earlier step
            writer.save(step, {"T": GRID})
    assert sorted(path.name for path in tmp_path.glob("*.h5")) == [
        "step-00000002.h5",
        "step-00000007.h5",
    ]
    assert (tmp_path / "latest").readlink() == Path("step-00000002.h5")
    assert load(None, tmp_path).step == 2


def test_damaged_and_unfinished_checkpoints_are_skipped_by_name(tmp_path):
    for step in (1, 2, 3):
        save(tmp_path, step, {"T": GRID + step})
    with (tmp_path / "step-00000003.h5").open("r+b") as file:
        file.truncate(5000)
    (tmp_path / "step-00000004.h5.part").write_bytes(b"half")
    with pytest.warns(UserWarning) as told:
        state = load(None, tmp_path)
    assert state.step == 2 and (state["T"] == GRID + 2).all()
    assert any("step-00000003.h5" in str(one.message) for one in told)
    assert any("step-00000004.h5.part: not finished" in str(one.message) for one in told)


def test_changed_bytes_are_detected_by_every_way_to_read(tmp_path):
    threads.run(
        4,
        lambda ranks: Writer(ranks, tmp_path, durable=False).save(
            1, {"T": part(GRID, ranks), "u": part(GRID, ranks)}
        ),
    )
    path = tmp_path / "step-00000001.h5"
    with h5py.File(path, "r+") as file:
        file["T"][5, 7, 9] = -1
    (message,) = {
        str(one)
        for one in threads.run(
            3,
            lambda ranks: load(ranks, path).read(
                "T", *tuple(vars(checkpoint.divide(GRID.shape, 3, ranks.rank)).values())
            ),
        )
    }
    assert re.search(
        r"array 'T': \[\d.*\], saved by rank 3, is not what was saved; load\(step=...\)", message
    ), message
    with pytest.raises(
        CheckpointError, match=r"array 'T': .*, saved by rank 3, is not what was saved"
    ):
        load(None, path)["T"]
    with pytest.raises(
        CheckpointError, match=r"array 'T': \[\d.*saved by rank 3, is not what was saved"
    ):
        load(None, path).read("T", (0, 1, 1), (6, 7, 9))
    assert (load(None, path)["u"] == GRID).all()
    assert load(None, path, verify=False)["T"][5, 7, 9] == -1


def test_a_writer_that_is_forgotten_unlocks_its_directory(tmp_path):
    gc.disable()  # no cycle keeps it
    try:
        writer = Writer(None, tmp_path)
        pending = writer.save_async(1, {"T": GRID})
        del writer
        pending.result()
        del pending
        with Writer(None, tmp_path) as other:
            other.save(2, {"T": GRID})
    finally:
        gc.enable()
    assert load(None, tmp_path).step == 2


def test_a_directory_has_one_writer(tmp_path):
    with Writer(None, tmp_path), pytest.raises(CheckpointError, match="another Writer"):
        Writer(None, tmp_path)
    Writer(None, tmp_path).close()


def test_a_failed_read_names_the_available_arrays(tmp_path):
    with pytest.raises(CheckpointError, match="no complete checkpoint"):
        load(None, tmp_path)
    save(tmp_path, 1, {"T": GRID})
    state = load(None, tmp_path)
    with pytest.raises(KeyError, match="no array 'u'; it has T"):
        state["u"]
    with pytest.raises(CheckpointError, match=r"array 'T': \[0:7, 0:8, 0:10\] lies outside"):
        state.read("T", (0, 0, 0), (7, 8, 10))
    with pytest.raises(CheckpointError, match="no complete checkpoint of step 9"):
        load(None, tmp_path, step=9)


@pytest.mark.system
def test_a_thousand_small_arrays(tmp_path):
    arrays = {f"group{number % 10}/a{number}": np.full((3, 4), number) for number in range(1000)}
    with Writer(None, tmp_path, durable=False) as writer:
        writer.save(0, arrays)
        writer.save(1, {name: array + 1 for name, array in arrays.items()})
    state = load(None, tmp_path)
    assert all(
        (found == arrays[name] + 1).all()
        for name, found in state.read_many(dict.fromkeys(state)).items()
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("engine", ["h5netcdf", "netcdf4"])
@pytest.mark.parametrize("files", [1, 2])
def test_xarray_shows_named_dimensions(tmp_path, engine, files):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip({"netcdf4": "netCDF4"}.get(engine, engine))
    coordinates = checkpoint.replicated(np.arange(10.0) / 2, dims=("x",), units="m")
    arrays = {
        "T": block(GRID, GRID.shape, (0, 0, 0), dims=("z", "y", "x")),
        "x": coordinates,
        "plain": GRID[0],
    }
    save(tmp_path, 1, arrays, files=files)
    with xarray.open_dataset(tmp_path / "latest", engine=engine) as found:
        assert found["T"].dims == ("z", "y", "x") and found["plain"].dims == ("dim8", "dim10")
        assert float(found["T"].sel(x=4.5)[5, 7]) == 479
