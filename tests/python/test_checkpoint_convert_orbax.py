"""Conversion of checkpoints between Orbax's own form and pario's."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pario import checkpoint
from pario.checkpoint import CheckpointError, lazy
from pario.checkpoint.convert import convert
from pario.checkpoint.geometry import Box, first_flaw
from pario.cli import main
from tests.support.commands import run_command

STATE: dict[str, Any] = {
    "model": {"w": np.arange(600.0).reshape(20, 30), "b": np.arange(3, dtype=np.int8)},
    "zeros": np.zeros((4, 4), np.float32),
    "layers": [{"scale": np.float32(0.5)}, 2.5, None, {}],
    "epoch": 3,
    "flag": True,
    "name": "é",
}
#: Converts in a process of its own; prints the bytes of memory that it needed more.
CONVERT = """
import resource, sys
from pario.checkpoint.convert import convert
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
convert("small", "first", sys.argv[3])
before = peak()
convert(sys.argv[1], sys.argv[2], sys.argv[3])
print(peak() - before)
"""


@pytest.fixture
def ocp() -> Any:
    pytest.importorskip("jax")
    return pytest.importorskip("orbax.checkpoint")


@contextmanager
def open_handler(ocp: Any, **options: Any) -> Iterator[Any]:
    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler(**options)) as checkpointer:
        yield checkpointer


def save(path: Path, state: Any) -> None:
    with checkpoint.Writer(None, path, durable=False) as writer:
        checkpoint.save_state_dict(writer, 7, state)


def show(value: Any) -> Any:
    """A state as text, with types."""
    if isinstance(value, dict):
        return {key: show(one) for key, one in sorted(value.items())}
    if isinstance(value, list):
        return [show(one) for one in value]
    if isinstance(value, np.ndarray):
        return value.dtype.name, value.shape, value.tolist()
    return value.item() if isinstance(value, np.generic) else value


@pytest.mark.system
@pytest.mark.parametrize("form", [{}, {"use_ocdbt": False}, {"use_zarr3": True}], ids=str)
def test_all_values_are_converted_and_back(
    ocp: Any, tmp_path: Path, form: dict[str, bool], capsys: pytest.CaptureFixture[str]
) -> None:
    with open_handler(ocp, **form) as checkpointer:
        checkpointer.save(tmp_path / "orbax", args=ocp.args.PyTreeSave(STATE))
    names = [str(tmp_path / name) for name in ("orbax", "run", "again")]
    assert main(["checkpoint", "convert", names[0], names[1]]) == 0
    assert main(["checkpoint", "convert", names[1], names[2], "--to", "orbax"]) == 0
    assert capsys.readouterr() == (f"{names[1]}/step-00000000.h5\n{names[2]}\n", "")
    found = checkpoint.load_state_dict(None, names[1])
    assert show(found) == show(STATE)
    with ocp.PyTreeCheckpointer() as checkpointer:
        assert show(checkpointer.restore(names[2])) == show(STATE)


@pytest.mark.system
def test_items_and_arrays_of_jax_are_converted(ocp: Any, tmp_path: Path) -> None:
    import jax

    half = jax.numpy.arange(6, dtype=jax.numpy.bfloat16)
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        for step in (4, 12):
            items = {
                "state": ocp.args.StandardSave({"half": half + step}),
                "loader": ocp.args.JsonSave({"position": step}),
            }
            manager.save(step, args=ocp.args.Composite(**items))
    for step, number in ((12, None), (4, 4)):
        convert(tmp_path / "run", tmp_path / "out", step=number)
        found = checkpoint.load_state_dict(None, tmp_path / "out")
        assert found["loader"] == {"position": step}
        assert found["state"]["half"].dtype == half.dtype
        assert found["state"]["half"].tolist() == (half + step).tolist()
    convert(tmp_path / "run", tmp_path / "part", select="state", step=4)
    assert list(checkpoint.load_state_dict(None, tmp_path / "part")) == ["half"]
    convert(tmp_path / "out", tmp_path / "back", "orbax")
    with ocp.PyTreeCheckpointer() as checkpointer:
        found = checkpointer.restore(tmp_path / "back")
    assert found["state"]["half"].dtype == half.dtype


@pytest.mark.system
def test_a_checkpoint_with_files_of_pario_is_one_state(ocp: Any, tmp_path: Path) -> None:
    """In another process: the handlers are those of the whole program."""
    program = (
        "import sys, orbax.checkpoint as ocp, pario.checkpoint.orbax as po, jax, numpy as np\n"
        "po.register()\n"
        "state = {'a': {'b': jax.numpy.ones(3)}, 'n': np.arange(2), 'step': 3, 't': 'x'}\n"
        "with ocp.PyTreeCheckpointer() as one:\n"
        "    one.save(sys.argv[1], state)\n"
    )
    run_command([sys.executable, "-c", program, tmp_path / "orbax"], status=0)
    convert(tmp_path / "orbax", tmp_path / "run")
    found = checkpoint.load_state_dict(None, tmp_path / "run")
    assert show(found) == {
        "a": {"b": ("float32", (3,), [1, 1, 1])},
        "n": ("int64", (2,), [0, 1]),
        "step": 3,
        "t": "x",
    }


@pytest.mark.system
@pytest.mark.parametrize("to", ["pario", "orbax"])
def test_a_conversion_needs_no_memory_for_the_state(ocp: Any, tmp_path: Path, to: str) -> None:
    size = 256 << 20
    large = {"large": np.zeros((size >> 12, 1024), np.float32), "n": 1}
    source = tmp_path / "source"
    if to == "pario":
        arg = ocp.SaveArgs(chunk_byte_size=4 << 20)
        with open_handler(ocp) as checkpointer:
            save_args = {"large": arg, "n": ocp.SaveArgs()}
            checkpointer.save(source, args=ocp.args.PyTreeSave(large, save_args=save_args))
            checkpointer.save(tmp_path / "small", args=ocp.args.PyTreeSave({"n": np.ones(3)}))
    else:
        save(source, large)
        save(tmp_path / "small", {"n": np.ones(3)})
    command = [sys.executable, "-c", CONVERT, "source", "target", to]
    done = run_command(command, cwd=tmp_path, status=0)
    assert int(done.stdout) < size / 2


@pytest.mark.parametrize(
    ("shape", "chunk"),
    [((), ()), ((0, 3), (1, 1)), ((7, 5), (2, 5)), ((6, 4, 10), (4, 1, 3)), ((9,), (100,))],
    ids=str,
)
@pytest.mark.parametrize("piece", [8, 64, 1 << 20])
def test_pieces_tile_an_array_in_whole_chunks(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], chunk: tuple[int, ...], piece: int
) -> None:
    monkeypatch.setattr(lazy, "_PIECE", piece)
    boxes = list(lazy.boxes_of(shape, chunk, 4))
    assert first_flaw(shape, boxes) is None
    least = 4 * int(np.prod([min(pair) for pair in zip(shape, chunk, strict=True)]))
    for box in boxes:
        assert box.size * 4 <= max(piece, least)
        assert all(begin % size == 0 for begin, size in zip(box.begin, chunk, strict=True))


def describe(path: Path, rows: Any) -> Path:
    path.mkdir()
    (path / "_METADATA").write_text(json.dumps(rows))
    return path


def test_unknown_forms_are_refused_by_name(tmp_path: Path) -> None:
    row = {
        "key_metadata": [{"key": "model", "key_type": 2}, {"key": "w", "key_type": 2}],
        "value_metadata": {"value_type": "my.Type"},
    }
    rows = {"tree_metadata": {"('model', 'w')": row}}
    source = describe(tmp_path / "type", rows)
    with pytest.raises(CheckpointError, match=r"type: model\.w is of type my\.Type"):
        convert(source, tmp_path / "out")
    source = describe(tmp_path / "tree", {"tree": 1})
    with pytest.raises(CheckpointError, match="_METADATA: expected the tree of a checkpoint"):
        convert(source, tmp_path / "out")
    (source / "_METADATA").write_text("{")
    with pytest.raises(CheckpointError, match="_METADATA: expected JSON"):
        convert(source, tmp_path / "out")
    (tmp_path / "step/state").mkdir(parents=True)
    (tmp_path / "step/_CHECKPOINT_METADATA").write_text("{}")
    with pytest.raises(CheckpointError, match=r"step/state: expected _METADATA or JSON"):
        convert(tmp_path / "step", tmp_path / "out")
    row["value_metadata"]["value_type"] = "string"
    source = describe(tmp_path / "text", rows)
    (source / "_strings.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"_strings\.json has no text model\.w"):
        convert(source, tmp_path / "out")


@pytest.mark.system
def test_missing_and_damaged_arrays_are_named(ocp: Any, tmp_path: Path) -> None:
    with open_handler(ocp, use_ocdbt=False) as checkpointer:
        checkpointer.save(tmp_path / "orbax", args=ocp.args.PyTreeSave(STATE))
    (tmp_path / "orbax/model.w/.zarray").unlink()
    with pytest.raises(CheckpointError, match=r"array 'model\.w': NOT_FOUND"):
        convert(tmp_path / "orbax", tmp_path / "out")
    save(tmp_path / "run", STATE)
    file = tmp_path / "run/step-00000007.h5"
    content = bytearray(file.read_bytes())
    content[content.index(STATE["model"]["w"].tobytes()) + 9] ^= 1
    file.write_bytes(content)
    with pytest.raises(CheckpointError, match="state/model/w"):
        convert(tmp_path / "run", tmp_path / "again", "orbax")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["orbax", "run"]


@pytest.mark.system
def test_values_that_orbax_cannot_hold_are_named(ocp: Any, tmp_path: Path) -> None:
    for value, message in (
        (np.array(["text"]), "array 'model.x': "),
        (np.zeros(2, "M8[s]"), "array 'model.x': "),
    ):
        save(tmp_path / "run", {"model": {"x": value}})
        with pytest.raises(CheckpointError, match=message):
            convert(tmp_path / "run", tmp_path / "out", "orbax")
    save(tmp_path / "run", {"a.b": 1, "a": {"b": 2}})
    with pytest.raises(CheckpointError, match=r"a\.b: several values have this key"):
        convert(tmp_path / "run", tmp_path / "out", "orbax")
    save(tmp_path / "other", {"a": 1})
    with pytest.raises(CheckpointError, match="other exists; expected the name of a new"):
        convert(tmp_path / "run", tmp_path / "other", "orbax")
    assert {one.name for one in tmp_path.iterdir()} == {"other", "run"}


def test_boxes_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy, "_PIECE", 64)
    whole = np.arange(60).reshape(5, 12)
    seen: list[Box] = []

    def read(box: Box) -> np.ndarray[Any, Any]:
        seen.append(box)
        return whole[tuple(slice(a, a + n) for a, n in zip(box.begin, box.shape, strict=True))]

    array = lazy.LazyArray(whole.shape, whole.dtype, read, (2, 3))
    assert np.array_equal(array.load(), whole)
    assert first_flaw(whole.shape, seen) is None and len(seen) > 1
