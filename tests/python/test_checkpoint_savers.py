"""The cells of other libraries in the table of docs/savers.md."""

from __future__ import annotations

import re
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.support.commands import run_command

#: Random bytes, because Orbax compresses others; as integers, of which no two are equal.
BASE = np.random.default_rng(1).integers(0, 2**31, 65536, dtype="<i4")
ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.system


class Saver(NamedTuple):
    """A library: its module, and functions that save and load one array with it."""

    module: str
    save: Callable[[Any, Path, Any], object]
    load: Callable[[Any, Path], Any]


def save_torch(torch: Any, path: Path, values: Any) -> None:
    torch.save({"w": torch.from_numpy(values.copy())}, path)


def save_dcp(dcp: Any, path: Path, values: Any) -> None:
    import torch

    dcp.save({"w": torch.from_numpy(values.copy())}, checkpoint_id=path)


def load_dcp(dcp: Any, path: Path) -> Any:
    import torch

    into = {"w": torch.zeros(len(BASE), dtype=torch.int32)}
    try:
        dcp.load(into, checkpoint_id=path)
    except dcp.CheckpointException as error:  # a BaseException
        raise RuntimeError(f"{path} cannot be loaded") from error
    return into["w"].numpy()


def save_h5py(h5py: Any, path: Path, values: Any) -> None:
    with h5py.File(path, "w") as file:
        file["w"] = values


def load_h5py(h5py: Any, path: Path) -> Any:
    with h5py.File(path) as file:
        return file["w"][...]


def save_orbax(orbax: Any, path: Path, values: Any) -> None:
    with orbax.StandardCheckpointer() as saver:
        saver.save(path, {"w": values})


def load_orbax(orbax: Any, path: Path) -> Any:
    return orbax.StandardCheckpointer().restore(path, {"w": BASE})["w"]


def save_orbax_step(orbax: Any, path: Path, values: Any) -> None:
    with orbax.CheckpointManager(path) as manager:
        step = (manager.latest_step() or 0) + 1
        manager.save(step, args=orbax.args.StandardSave({"w": values}))


def load_orbax_step(orbax: Any, path: Path) -> Any:
    with orbax.CheckpointManager(path) as manager:
        args = orbax.args.StandardRestore({"w": BASE})
        return manager.restore(manager.latest_step(), args=args)["w"]


SAVERS = {
    "torch.save": Saver("torch", save_torch, lambda torch, path: torch.load(path)["w"].numpy()),
    "DCP": Saver("torch.distributed.checkpoint", save_dcp, load_dcp),
    "safetensors": Saver(
        "safetensors.numpy",
        lambda safetensors, path, values: safetensors.save_file({"w": values}, path),
        lambda safetensors, path: safetensors.load_file(path)["w"],
    ),
    "h5py": Saver("h5py", save_h5py, load_h5py),
    "zarr": Saver(
        "zarr",
        lambda zarr, path, values: zarr.create_array(
            path, data=values, compressors=None, overwrite=True
        ),
        lambda zarr, path: zarr.open_array(path, mode="r")[...],
    ),
    "Orbax": Saver("orbax.checkpoint", save_orbax, load_orbax),
    "Orbax's steps": Saver("orbax.checkpoint", save_orbax_step, load_orbax_step),
}


def import_saver(name: str) -> ModuleType:
    module: ModuleType
    module = pytest.importorskip(SAVERS[name].module, reason=f"{name} is not installed")
    return module


@pytest.mark.parametrize("name", ["torch.save", "safetensors", "h5py", "zarr", "Orbax"])
def test_changed_bytes_are_loaded_without_an_error(tmp_path: Path, name: str) -> None:
    module, path = import_saver(name), tmp_path / "saved"
    SAVERS[name].save(module, path, BASE)
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    largest = max(files, key=lambda one: one.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[len(content) // 2] ^= 1
    largest.write_bytes(content)
    assert len(np.flatnonzero(SAVERS[name].load(module, path) != BASE)) == 1


def save_until_killed(name: str, path: Path) -> None:
    """Saves other values; the kernel kills the process when a file gets longer than 16 KiB."""
    __import__(module := SAVERS[name].module)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (16 << 10, 16 << 10))
    SAVERS[name].save(sys.modules[module], path, BASE + 1)


@pytest.mark.parametrize(
    ("name", "stays"),
    [
        ("safetensors", True),
        ("Orbax's steps", True),
        ("torch.save", False),
        ("DCP", False),
        ("h5py", False),
        ("zarr", False),
    ],
)
def test_a_killed_save_leaves_or_destroys_the_earlier_state(
    tmp_path: Path, name: str, stays: bool
) -> None:
    module, path = import_saver(name), tmp_path / "saved"
    SAVERS[name].save(module, path, BASE)
    code = f"from {__name__} import *; save_until_killed({name!r}, Path({str(path)!r}))"
    run_command([sys.executable, "-c", code], cwd=ROOT, status=-signal.SIGXFSZ)
    try:
        loaded = SAVERS[name].load(module, path)
    except Exception:  # each library has its own
        loaded = None
    assert np.array_equal(loaded, BASE) == stays


def test_a_failed_torch_save_destroys_the_earlier_file(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "saved"
    torch.save({"w": torch.zeros(4)}, path)
    with pytest.raises(AttributeError, match=re.escape("<lambda>")):
        torch.save({"w": torch.ones(4), "f": lambda: 0}, path)
    with pytest.raises((RuntimeError, EOFError)):
        torch.load(path)


class Code:
    """A value whose pickle calls a function when it is loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("called by a pickle",)


def test_torch_load_calls_functions_of_a_file_only_if_it_is_asked_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"w": Code()}, tmp_path / "saved")
    with pytest.raises(Exception, match="Weights only load failed"):
        torch.load(tmp_path / "saved")
    assert "called" not in capsys.readouterr().out
    torch.load(tmp_path / "saved", weights_only=False)
    assert "called by a pickle" in capsys.readouterr().out


def test_dcp_joins_its_files_to_one_of_safetensors(tmp_path: Path) -> None:
    dcp = pytest.importorskip("torch.distributed.checkpoint")
    import torch

    pytest.importorskip("safetensors")
    from safetensors.numpy import load_file

    how = {"save_distributed": True, "enable_consolidation": True}
    writer = dcp.HuggingFaceStorageWriter(str(tmp_path), **how)
    dcp.save({"w": torch.arange(4.0)}, storage_writer=writer)
    [path] = tmp_path.glob("*.safetensors")
    assert load_file(path)["w"].tolist() == [0, 1, 2, 3]


def test_dcp_compresses_by_an_extension(tmp_path: Path) -> None:
    dcp = pytest.importorskip("torch.distributed.checkpoint")
    import torch
    from torch.distributed.checkpoint._extension import ZStandard

    pytest.importorskip("zstandard")
    writer = dcp.FileSystemWriter(tmp_path, _extensions=[ZStandard()])
    dcp.save({"w": torch.zeros(1 << 20)}, storage_writer=writer)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 1 << 16
    into = {"w": torch.ones(1 << 20)}
    dcp.load(into, checkpoint_id=tmp_path)
    assert not into["w"].any()


def test_text_in_a_state_is_saved_by_one_checkpointer_of_orbax(tmp_path: Path) -> None:
    orbax = pytest.importorskip("orbax.checkpoint")
    state = {"w": np.arange(3), "parts": [{"text": "a"}, 2]}
    orbax.PyTreeCheckpointer().save(tmp_path / "tree", state)
    loaded = orbax.PyTreeCheckpointer().restore(tmp_path / "tree")
    assert (loaded["w"].tolist(), loaded["parts"]) == ([0, 1, 2], [{"text": "a"}, 2])
    standard = orbax.Checkpointer(orbax.StandardCheckpointHandler())
    with standard, pytest.raises(ValueError, match=r"Unsupported type: <class 'str'>"):
        standard.save(tmp_path / "standard", state)


def test_orbax_keeps_the_newest_each_nth_and_the_best(tmp_path: Path) -> None:
    orbax = pytest.importorskip("orbax.checkpoint")
    kept = {}
    for name, how in {
        "newest": {},
        "best": {"best_fn": lambda metrics: metrics["loss"], "best_mode": "min"},
    }.items():
        options = orbax.CheckpointManagerOptions(max_to_keep=2, keep_period=4, **how)
        with orbax.CheckpointManager(tmp_path / name, options=options) as manager:
            for step in range(10):
                args = orbax.args.StandardSave({"w": BASE[:4]})
                manager.save(step, args=args, metrics={"loss": abs(step - 5)})
            manager.wait_until_finished()
            kept[name] = set(manager.all_steps())
    assert kept["newest"] == {0, 4, 8, 9}
    assert {0, 4, 5, 8} <= kept["best"] <= {0, 4, 5, 6, 8}


def test_zarr_opens_arrays_of_orbax_without_ocdbt_alone(tmp_path: Path) -> None:
    orbax, zarr = pytest.importorskip("orbax.checkpoint"), pytest.importorskip("zarr")
    for ocdbt in (False, True):
        handler = orbax.PyTreeCheckpointHandler(use_ocdbt=ocdbt)
        orbax.Checkpointer(handler).save(tmp_path / str(ocdbt), {"w": BASE})
    assert np.array_equal(zarr.open(tmp_path / "False" / "w", mode="r")[...], BASE)
    assert not (tmp_path / "True" / "w").exists()
