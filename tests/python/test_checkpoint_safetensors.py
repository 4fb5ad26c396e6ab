"""Checkpoints that are HDF5 and safetensors files at the same time."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from pario import checkpoint
from pario.checkpoint import CheckpointError, Writer, block
from pario.checkpoint.geometry import whole
from tests.python.support.threads import run
from tests.support.commands import run_command

STATE = {
    "model": {
        "w": np.arange(300_000.0).reshape(600, 500),
        "b": np.arange(3, dtype=np.int8),
        "half": np.arange(7, dtype=np.float16),
        "flag": np.array([True, False, True]),
        "scale": np.float64(2.5),
        "empty": np.zeros((0, 3), np.float32),
        "many": np.zeros((1,) * 20, np.uint8),
    },
    "pario.0": np.arange(5, dtype=np.uint16),
    "__metadata__": np.arange(2),
    "été": np.arange(4, dtype=np.int64),
}
NAMES = {
    "model.w": STATE["model"]["w"],
    "model.b": STATE["model"]["b"],
    "model.half": STATE["model"]["half"],
    "model.flag": STATE["model"]["flag"],
    "model.scale": STATE["model"]["scale"],
    "model.empty": STATE["model"]["empty"],
    "model.many": STATE["model"]["many"],
    "pario.0": STATE["pario.0"],
    "state/__metadata__": STATE["__metadata__"],
    "été": STATE["été"],
}


def header_of(path: Path) -> dict[str, Any]:
    """The header of a safetensors file, which must cover the file as safetensors requires."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    assert header.pop("__metadata__") == {"format": "pt"}
    at = 0
    for begin, end in sorted(about["data_offsets"] for about in header.values()):
        assert begin == at
        at = end
    assert 8 + length + at == len(content)
    return header


def check(path: Path) -> None:
    header = header_of(path)
    found = checkpoint.read_safetensors(path)
    fillers = header.keys() - NAMES.keys()
    # metadata before and after the arrays, and the rest of HDF5's block of small ones
    assert fillers == {"pario.1", "pario.2", "pario.3"}
    for name, expected in NAMES.items():
        array = found[name]
        assert (array.dtype, array.shape) == (expected.dtype, expected.shape)
        assert array.tobytes() == expected.tobytes()
        assert header[name]["data_offsets"][0] % array.dtype.itemsize == 0
    with h5py.File(path) as file:
        assert (file["state/model/w"][...] == STATE["model"]["w"]).all()


def test_a_state_is_one_file_of_both_formats(tmp_path: Path) -> None:
    """Also the next checkpoint, which is made from the first one, with longer metadata."""
    with Writer(None, tmp_path, durable=False, safetensors=True) as writer:
        for step, note in ((1, ""), (2, "long " * 5000)):
            path = checkpoint.save_state_dict(writer, step, STATE, {"note": note})
            check(Path(path))
            loaded = checkpoint.load_state_dict(None, tmp_path)
            assert loaded["model"]["w"].tobytes() == STATE["model"]["w"].tobytes()
    assert checkpoint.load(None, tmp_path).attrs == {"note": "long " * 5000}


@pytest.mark.parametrize(
    ("options", "is_both"),
    [
        ({}, True),
        ({"safetensors": False}, False),
        ({"compress": "zstd"}, False),
        ({"files": "rank"}, False),
    ],
)
def test_states_are_files_of_both_formats_unless_an_option_forbids_it(
    tmp_path: Path, options: dict[str, Any], is_both: bool
) -> None:
    with Writer(None, tmp_path, durable=False, **options) as writer:
        for step in (1, 2):
            path = Path(checkpoint.save_state_dict(writer, step, STATE))
            found = path / "master.h5" if path.is_dir() else path
            assert (found.read_bytes()[:8] != bytes(8)) == is_both
            if is_both:
                check(path)
    assert checkpoint.load_state_dict(None, tmp_path)["model"]["b"].tolist() == [0, 1, 2]
    with Writer(None, tmp_path, durable=False, **options) as writer:
        plain = Path(writer.save(3, {"w": STATE["model"]["w"]}))
        assert plain.is_dir() or plain.read_bytes()[:8] == bytes(8)


def test_arrays_that_safetensors_cannot_have_are_covered_bytes(tmp_path: Path) -> None:
    arrays = {
        "a": np.arange(3.0),
        "z": np.array([1 + 2j]),
        "text": "abc",
        "big": np.arange(3, dtype=">i4"),
    }
    with Writer(None, tmp_path, durable=False, safetensors=True) as writer:
        path = writer.save(1, arrays)
    assert [name for name in header_of(path) if not name.startswith("pario.")] == ["a"]
    state = checkpoint.load(None, tmp_path)
    assert state["z"] == arrays["z"] and state["big"].tolist() == [0, 1, 2]


def test_ranks_write_one_file_of_both_formats(tmp_path: Path) -> None:
    full = np.arange(2_000_000.0).reshape(1000, 2000)

    def program(ranks: Any) -> None:
        box = checkpoint.divide(full.shape, ranks.size, ranks.rank)
        part = block(full[box.within(whole(full.shape))], full.shape, box.begin)
        with Writer(ranks, tmp_path, durable=False, safetensors=True) as writer:
            writer.save(1, {"w": part, "b": full[0]})

    run(3, program)
    path = tmp_path / "step-00000001.h5"
    header_of(path)
    found = checkpoint.read_safetensors(path)
    assert (found["w"] == full).all() and (found["b"] == full[0]).all()


def test_names_and_texts_that_no_reader_accepts_are_refused(tmp_path: Path) -> None:
    tensors = {"__metadata__": np.zeros(3), "b": np.zeros(2)}
    with pytest.raises(CheckpointError, match="tensor '__metadata__': safetensors files have"):
        checkpoint.write_safetensors(tmp_path / "a", tensors)
    with pytest.raises(CheckpointError, match="metadata 'step': 1; expected text"):
        checkpoint.write_safetensors(tmp_path / "a", {}, {"step": 1})
    with (
        Writer(None, tmp_path / "run", durable=False, safetensors=True) as writer,
        pytest.raises(CheckpointError, match="tensor '__metadata__'"),
    ):
        writer.save(1, tensors)
    assert not (tmp_path / "a").exists() and not list((tmp_path / "run").glob("*.h5*"))


def test_several_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="safetensors=True, files='rank'; expected files=1"):
        Writer(None, tmp_path, files="rank", safetensors=True)


@pytest.mark.system
def test_programs_of_both_formats_read_the_same_tensors(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    safe_open = pytest.importorskip("safetensors").safe_open
    state = {
        "w": torch.arange(12.0).reshape(3, 4),
        "bfloat16": torch.arange(7).to(torch.bfloat16),
        "float8": torch.ones(3).to(torch.float8_e4m3fn),
        "scalar": torch.tensor(2.5, dtype=torch.float64),
        "empty": torch.zeros(0, 3),
        "flag": torch.tensor([True, False]),
    }
    with Writer(None, tmp_path, durable=False, safetensors=True) as writer:
        path = checkpoint.save_state_dict(writer, 1, state)
    with safe_open(path, "pt") as file:
        assert file.metadata() == {"format": "pt"}
        for name, expected in state.items():
            assert file.get_tensor(name).dtype == expected.dtype
            assert torch.equal(file.get_tensor(name), expected)
        assert file.get_slice("w")[1:, :2].tolist() == [[4.0, 5.0], [8.0, 9.0]]
    with h5py.File(path) as file:
        assert file["state/bfloat16"].attrs["torch_dtype"] == "bfloat16"
        assert file["state/w"][...].tolist() == state["w"].tolist()
    if shutil.which("h5dump"):
        done = run_command(["h5dump", "-y", "-d", "/state/w", path])
        assert "8, 9, 10, 11" in done.stdout


@pytest.mark.exhaustive
def test_transformers_loads_a_model_from_a_checkpoint(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=50, n_positions=8)
    model = transformers.GPT2LMHeadModel(config)
    model.save_pretrained(tmp_path / "model")
    kept = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "model").state_dict()
    with Writer(None, tmp_path / "ckpt", durable=False, safetensors=True) as writer:
        path = checkpoint.save_state_dict(writer, 1, kept)
    weights = tmp_path / "model" / "model.safetensors"
    weights.unlink()  # kept tensors are mapped from it
    weights.symlink_to(path)
    found = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "model").state_dict()
    assert kept.keys() == found.keys()
    assert all(torch.equal(kept[name], found[name]) for name in kept)


@pytest.mark.exhaustive
def test_xarray_opens_a_checkpoint_of_both_formats(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    with Writer(None, tmp_path, durable=False, safetensors=True) as writer:
        path = checkpoint.save_state_dict(writer, 1, {"w": np.arange(6.0).reshape(2, 3)})
    with xarray.open_dataset(path, engine="h5netcdf", group="state") as found:
        assert found["w"].values.tolist() == [[0, 1, 2], [3, 4, 5]]
