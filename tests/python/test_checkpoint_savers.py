"""The cells of other libraries in the table of docs/savers.md."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

#: Random bytes, because Orbax compresses others; as integers, of which no two are equal.
BASE = np.random.default_rng(1).integers(0, 2**31, 65536, dtype="<i4")

pytestmark = pytest.mark.system


def use_torch(path: Path) -> Callable[[], Any]:
    torch = pytest.importorskip("torch")
    torch.save({"w": torch.from_numpy(BASE.copy())}, path)
    return lambda: torch.load(path)["w"].numpy()


def use_safetensors(path: Path) -> Callable[[], Any]:
    safetensors = pytest.importorskip("safetensors.numpy")
    safetensors.save_file({"w": BASE}, path)
    return lambda: safetensors.load_file(path)["w"]


def use_h5py(path: Path) -> Callable[[], Any]:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file["w"] = BASE

    def load() -> Any:
        with h5py.File(path) as file:
            return file["w"][...]

    return load


def use_orbax(path: Path) -> Callable[[], Any]:
    orbax = pytest.importorskip("orbax.checkpoint")
    saver = orbax.StandardCheckpointer()
    saver.save(path, {"w": BASE})
    saver.wait_until_finished()
    return lambda: saver.restore(path, {"w": BASE})["w"]


@pytest.mark.parametrize("use", [use_torch, use_safetensors, use_h5py, use_orbax])
def test_changed_bytes_are_loaded_without_an_error(
    tmp_path: Path, use: Callable[[Path], Callable[[], Any]]
) -> None:
    path = tmp_path / "saved"
    load = use(path)
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    largest = max(files, key=lambda one: one.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[len(content) // 2] ^= 1
    largest.write_bytes(content)
    assert len(np.flatnonzero(load() != BASE)) == 1


def test_a_failed_torch_save_destroys_the_earlier_file(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "saved"
    torch.save({"w": torch.zeros(4)}, path)
    with pytest.raises(AttributeError, match=re.escape("<lambda>")):
        torch.save({"w": torch.ones(4), "f": lambda: 0}, path)
    with pytest.raises((RuntimeError, EOFError)):
        torch.load(path)
