"""Damaged metadata is detected by its checksums before HDF5 reads it, which may loop forever."""

import h5py
import numpy as np
import pytest

from pario import hdf5
from pario.checkpoint import CheckpointError, Writer, block, load
from pario.checkpoint.identity import encode_record, find_record, read_identity, table_bytes_of
from pario.checkpoint.metadata_table import check_metadata

DAMAGED = "its HDF5 metadata is not what was saved"
ARRAYS = {
    "T": np.arange(30.0),
    "large": np.arange(200_000.0),
    "names": np.array(["a", "b"]),
    **{f"group/{number}": np.arange(number) for number in range(40)},
}


@pytest.fixture
def saved(tmp_path):
    """A checkpoint that was saved with the plan of the previous one."""
    with Writer(None, tmp_path, durable=False, keep=1) as writer:
        for step in range(2):
            path = writer.save(step, ARRAYS, {"time": 0.5 + step, "note": "x" * 5000 * step})
    return path


def extents_of(path):
    """Returns the rows of the metadata table: offset in the file and bytes."""
    with path.open("rb") as file:
        end, record = find_record(file.fileno())
        size = table_bytes_of(record)
        file.seek(end - len(record) - size)
        rows = np.frombuffer(file.read(size - 16), "<i8").reshape(-1, 2)
    return [(begin + end, length) for begin, length in rows.tolist()]


def flip(path, offset):
    content = bytearray(path.read_bytes())
    content[offset] ^= 0x50
    path.write_bytes(content)


def places_of(path):
    """Returns the offset of every 211th byte of the metadata table and its extents, except for the
    HDF5 signature, without which HDF5 does not open the file."""
    extents = extents_of(path)
    extents[0] = extents[0][0] + 8, extents[0][1] - 8
    table = (extents[0][0] - 72 - 16 * len(extents) - 16, 16 * len(extents) + 16)
    return [at for begin, length in (table, *extents) for at in range(begin, begin + length, 211)]


@pytest.mark.system
def test_damage_of_any_part_of_the_metadata_is_an_error_before_hdf5_reads_it(saved, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("HDF5 reads the file")

    monkeypatch.setattr(hdf5, "open_to_read", refuse)
    for place in places_of(saved):
        flip(saved, place)
        with pytest.raises(CheckpointError, match=f"{saved}: {DAMAGED}"):
            load(None, saved)
        flip(saved, place)
    check_metadata(saved)


def test_all_bytes_written_by_hdf5_are_compared(saved):
    covered = np.zeros(saved.stat().st_size, bool)
    for begin, length in extents_of(saved):
        covered[begin : begin + length] = True
    content = np.frombuffer(saved.read_bytes(), np.uint8)
    with h5py.File(saved) as file:
        datasets = [file[name] for name in (*ARRAYS, "pario/checksums")]
        extents = [(one.id.get_offset(), one.id.get_storage_size()) for one in datasets]
        begin = file.userblock_size
    elements = np.zeros(len(content), bool)
    for offset, length in extents:
        if length:
            elements[offset : offset + length] = True
    assert not (covered & elements).any()
    assert not content[begin:][~covered[begin:] & ~elements[begin:]].any()


@pytest.mark.parametrize("files", ["rank", 1])
def test_files_in_parts_have_a_table_each(tmp_path, files):
    large = np.arange(300_000.0)
    with Writer(None, tmp_path, durable=False, files=files) as writer:
        path = writer.save(1, {"T": block(large, large.shape, (0,))})
    for one in [path] if path.is_file() else sorted(path.glob("*.h5")):
        assert extents_of(one)
        check_metadata(one)
        flip(one, sum(extents_of(one)[-1]) - 1)
        with pytest.raises(CheckpointError, match=f"{one}: {DAMAGED}"):
            load(None, one)


def test_files_without_table_are_read(saved):
    identity = read_identity(saved)
    content = bytearray(saved.read_bytes())
    with saved.open("rb") as file:
        end, _ = find_record(file.fileno())
    content[end - 64 : end] = encode_record(identity)
    content[end - 100] ^= 1  # an unused byte of the table
    saved.write_bytes(content)
    assert load(None, saved).attrs["time"] == 1.5


def test_metadata_that_another_program_has_changed_is_read_without_verification(saved):
    with h5py.File(saved, "r+") as file:
        file["T"].attrs["units"] = "K"
    with pytest.raises(CheckpointError, match=DAMAGED):
        load(None, saved)
    state = load(None, saved, verify=False)
    assert state.array_attrs("T") == {"units": "K"} and (state["T"] == ARRAYS["T"]).all()


def test_damaged_metadata_makes_load_take_the_older_checkpoint(tmp_path):
    with Writer(None, tmp_path, durable=False) as writer:
        for step in (1, 2):
            path = writer.save(step, ARRAYS)
    flip(path, extents_of(path)[0][0] + 40)
    with pytest.warns(UserWarning, match=DAMAGED):
        assert load(None, tmp_path).step == 1


def test_a_thousand_small_arrays_have_a_table(tmp_path):
    with Writer(None, tmp_path, durable=False) as writer:
        path = writer.save(1, {f"a{number}": np.ones(100) for number in range(1000)})
    assert extents_of(path)
    check_metadata(path)


def test_small_arrays_lie_together_apart_from_the_metadata(tmp_path):
    """So their number changes neither the extents of metadata nor the writes of a save."""
    counts = []
    for number in (10, 300):
        with Writer(None, tmp_path / str(number), durable=False) as writer:
            path = writer.save(1, {f"group/{one}": np.arange(9.0) for one in range(number)})
        counts.append(len(extents_of(path)))
    assert max(counts) <= 6
