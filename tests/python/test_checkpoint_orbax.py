"""Orbax's checkpoints in the files of pario, by one process with four devices."""

from __future__ import annotations

import doctest
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pario import checkpoint
from pario.checkpoint import CheckpointError, transfer

pytestmark = pytest.mark.system
# Read when JAX makes its devices, which may be in a test before these.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")
FILE = "pario/jax.Array/step-00000000.h5"


@pytest.fixture
def own() -> Iterator[SimpleNamespace]:
    """JAX and Orbax, as they are without pario."""
    jax = pytest.importorskip("jax")
    ocp = pytest.importorskip("orbax.checkpoint")
    kinds = (jax.Array, np.ndarray, int, float, bytes, np.number)
    before = [ocp.type_handlers.get_type_handler(kind) for kind in kinds]
    yield SimpleNamespace(jax=jax, jnp=jax.numpy, ocp=ocp)
    for kind, handler in zip(kinds, before, strict=True):
        ocp.type_handlers.register_type_handler(kind, handler, override=True)


@pytest.fixture
def use(own: SimpleNamespace) -> SimpleNamespace:
    """JAX, and Orbax with pario's files."""
    import pario.checkpoint.orbax

    pario.checkpoint.orbax.register(durable=False)
    return own


def put(use: SimpleNamespace, array: Any, mesh: tuple[int, ...], *spec: str | None) -> Any:
    return use.jax.device_put(array, make_sharding(use, mesh, *spec))


def make_sharding(use: SimpleNamespace, mesh: tuple[int, ...], *spec: str | None) -> Any:
    made = use.jax.make_mesh(mesh, ("x", "y")[: len(mesh)])
    return use.jax.sharding.NamedSharding(made, use.jax.sharding.PartitionSpec(*spec))


def save(use: SimpleNamespace, path: Path, state: Any) -> None:
    with use.ocp.PyTreeCheckpointer() as checkpointer:
        checkpointer.save(path, state)


def restore(use: SimpleNamespace, path: Path, **options: Any) -> Any:
    with use.ocp.PyTreeCheckpointer() as checkpointer:
        return checkpointer.restore(path, **options)


def grid(use: SimpleNamespace) -> Any:
    return put(use, np.arange(48, dtype=np.float32).reshape(8, 6), (4,), "x")


def test_all_kinds_of_values_are_restored_as_they_were(
    use: SimpleNamespace, tmp_path: Path
) -> None:
    jnp, key = use.jnp, use.jax.random.key(3)
    state = {
        "grid": grid(use),
        "half": put(use, jnp.arange(8, dtype=jnp.bfloat16), (2, 2), "y"),
        "copies": put(use, jnp.ones(3, jnp.int8), (2, 2)),
        "number": jnp.float32(0.5),
        "empty": jnp.zeros((0, 3)),
        "a/b": [jnp.arange(2), (jnp.arange(3), {"x.y": jnp.zeros(1, bool)})],
        "key": key,
        "numpy": np.arange(6, dtype=np.int64).reshape(2, 3),
        "plain": {"epoch": 3, "rate": 0.25, "flag": True, "text": "é", "none": None, "no": {}},
    }
    save(use, tmp_path / "1", state)
    found = restore(use, tmp_path / "1", item=state)
    assert use.jax.random.key_data(found["key"]).tolist() == use.jax.random.key_data(key).tolist()
    for one, other in zip(
        use.jax.tree.leaves({**found, "key": 0}),
        use.jax.tree.leaves({**state, "key": 0}),
        strict=True,
    ):
        assert type(one) is type(other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
        assert np.array_equal(one, other)
        assert getattr(one, "sharding", None) == getattr(other, "sharding", None)
    assert use.jax.tree.structure(found) == use.jax.tree.structure(state)


@pytest.mark.parametrize(
    ("mesh", "spec"), [((2,), ("x",)), ((2, 2), ("y", "x")), ((4,), (None,)), ((1, 2), (None, "y"))]
)
def test_arrays_are_restored_on_another_mesh(
    use: SimpleNamespace, tmp_path: Path, mesh: tuple[int, ...], spec: tuple[str | None, ...]
) -> None:
    state = {"grid": grid(use)}
    save(use, tmp_path / "1", state)
    sharding = make_sharding(use, mesh, *spec)
    args = use.ocp.ArrayRestoreArgs(sharding=sharding)
    found = restore(use, tmp_path / "1", restore_args={"grid": args})["grid"]
    assert found.sharding == sharding and np.array_equal(found, state["grid"])
    args = use.ocp.ArrayRestoreArgs(mesh=sharding.mesh, mesh_axes=sharding.spec, dtype=np.float16)
    found = restore(use, tmp_path / "1", restore_args={"grid": args})["grid"]
    assert (found.dtype, found.sharding) == (np.float16, sharding)
    args = use.ocp.RestoreArgs(restore_type=np.ndarray)
    found = restore(use, tmp_path / "1", restore_args={"grid": args})["grid"]
    assert type(found) is np.ndarray and np.array_equal(found, state["grid"])


def test_a_checkpoint_manager_keeps_the_newest(use: SimpleNamespace, tmp_path: Path) -> None:
    """Several items, in the background; the program donates its arrays meanwhile."""
    ocp, args = use.ocp, use.ocp.args
    step = use.jax.jit(lambda x: x + 1, donate_argnums=0)
    options = ocp.CheckpointManagerOptions(max_to_keep=2)
    values = grid(use)
    with ocp.CheckpointManager(tmp_path / "run", options=options) as manager:
        for number in range(4):
            items = {
                "state": args.StandardSave({"grid": values, "step": number}),
                "more": args.PyTreeSave({"twice": 2 * values}),
                "text": args.JsonSave({"number": number}),
            }
            manager.save(number, args=args.Composite(**items))
            values = step(values)
        manager.wait_until_finished()
        assert manager.all_steps() == [2, 3]
        shape = use.jax.ShapeDtypeStruct(
            (8, 6), np.float32, sharding=make_sharding(use, (2, 2), "x", "y")
        )
        found = manager.restore(
            2,
            args=args.Composite(
                state=args.StandardRestore({"grid": shape, "step": 0}), more=args.PyTreeRestore()
            ),
        )
    expected = np.arange(48, dtype=np.float32).reshape(8, 6) + 2
    assert np.array_equal(found.state["grid"], expected) and found.state["step"] == 2
    assert found.state["grid"].sharding == shape.sharding
    assert np.array_equal(found.more["twice"], 2 * expected)
    file = tmp_path / "run/2/state" / FILE
    assert checkpoint.load(None, file)["state/grid"].tolist() == expected.tolist()


def test_damage_is_refused_by_name(use: SimpleNamespace, tmp_path: Path) -> None:
    save(use, tmp_path / "1", {"params": {"grid": grid(use)}, "n": np.arange(4)})
    for kind, name in (("jax.Array", "state/params.grid"), ("np.ndarray", "state/n")):
        file = tmp_path / "1/pario" / kind / "step-00000000.h5"
        content = bytearray(file.read_bytes())
        at = content.index(checkpoint.load(None, file)[name].tobytes())
        content[at + 5] ^= 1
        file.write_bytes(content)
        with pytest.raises(CheckpointError, match=name):
            restore(use, tmp_path / "1")
        content[at + 5] ^= 1
        file.write_bytes(content)
    assert np.array_equal(restore(use, tmp_path / "1")["params"]["grid"], grid(use))


def test_all_bytes_go_through_the_file_layer(
    use: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {"write": 0, "read": 0}

    def count(name: str) -> None:
        real = getattr(transfer, name)

        def transfer_and_count(path: str, moves: Any, **options: Any) -> None:
            counts[name] += sum(move.data.nbytes for move in moves)
            real(path, moves, **options)

        monkeypatch.setattr(transfer, name, transfer_and_count)

    count("write")
    count("read")
    large = put(use, np.arange(1 << 20, dtype=np.float32).reshape(1024, 1024), (4,), None, "x")
    save(use, tmp_path / "1", {"large": large, "copy": put(use, large, (4,))})
    assert counts["write"] == 2 * large.nbytes
    found = restore(use, tmp_path / "1")
    assert np.array_equal(found["large"], large)
    assert 2 * large.nbytes <= counts["read"] < 2.1 * large.nbytes
    stored = [one for one in (tmp_path / "1").rglob("*") if one.is_file()]
    others = sum(one.stat().st_size for one in stored if "pario" not in one.parts)
    assert others < 10_000


def test_the_state_is_loaded_without_orbax(use: SimpleNamespace, tmp_path: Path) -> None:
    state = {"layers": [{"w": grid(use)}, {"w": 2 * grid(use)}], "bias": use.jnp.ones(2)}
    save(use, tmp_path / "1", state)
    found = checkpoint.load_state_dict(None, tmp_path / "1/pario/jax.Array")
    assert use.jax.tree.structure(found) == use.jax.tree.structure(state)
    assert np.array_equal(found["layers"][1]["w"], 2 * grid(use))


def test_orbax_restores_its_own_checkpoints_as_before(own: SimpleNamespace, tmp_path: Path) -> None:
    import pario.checkpoint.orbax

    state = {"grid": grid(own), "n": np.arange(3), "step": 3, "key": own.jax.random.key(1)}
    save(own, tmp_path / "1", state)
    pario.checkpoint.orbax.register()
    pario.checkpoint.orbax.register()  # again
    found = restore(own, tmp_path / "1")
    assert np.array_equal(found["grid"], state["grid"]) and found["step"] == 3
    assert own.jax.random.key_data(found["key"]).tolist() == [0, 1]
    save(own, tmp_path / "2", state)
    assert (tmp_path / "2" / FILE).is_file() and not (tmp_path / "1" / FILE).exists()


def test_the_metadata_of_a_checkpoint_are_those_of_orbax(
    own: SimpleNamespace, tmp_path: Path
) -> None:
    import pario.checkpoint.orbax

    state = {"grid": grid(own), "n": np.arange(3), "step": 3}
    save(own, tmp_path / "1", state)
    pario.checkpoint.orbax.register()
    save(own, tmp_path / "2", state)
    with own.ocp.PyTreeCheckpointer() as checkpointer:
        by_orbax, mine = (
            checkpointer.metadata(tmp_path / name).item_metadata.tree for name in "12"
        )
    for name in state:
        assert type(mine[name]) is type(by_orbax[name])
        assert (mine[name].shape, mine[name].dtype, mine[name].sharding) == (
            by_orbax[name].shape,
            by_orbax[name].dtype,
            by_orbax[name].sharding,
        )


@pytest.mark.parametrize("shape", [(8, 8), (4, 4), (12, 2), (4, 12)], ids=str)
def test_arrays_are_padded_and_cut_on_request(
    use: SimpleNamespace, tmp_path: Path, shape: tuple[int, int]
) -> None:
    save(use, tmp_path / "1", {"grid": grid(use)})
    sharding = make_sharding(use, (2, 2), "x", "y")
    args = use.ocp.ArrayRestoreArgs(sharding=sharding, global_shape=shape, strict=False)
    found = restore(use, tmp_path / "1", restore_args={"grid": args})["grid"]
    expected = np.zeros((20, 20), np.float32)
    expected[:8, :6] = grid(use)
    assert np.array_equal(found, expected[: shape[0], : shape[1]])


def test_another_shape_is_refused_by_name(use: SimpleNamespace, tmp_path: Path) -> None:
    save(use, tmp_path / "1", {"grid": grid(use)})
    for shape, strict in (((8, 7), True), ((9, 6), True), ((48,), False)):
        args = use.ocp.ArrayRestoreArgs(
            sharding=make_sharding(use, (1,)), global_shape=shape, strict=strict
        )
        message = rf"'state/grid' has shape \[8, 6\], its ArrayRestoreArgs \[{shape[0]}"
        with pytest.raises(CheckpointError, match=message):
            restore(use, tmp_path / "1", restore_args={"grid": args})
    args = use.ocp.ArrayRestoreArgs(sharding=make_sharding(use, (4,), None, "x"))
    with pytest.raises(CheckpointError, match=r"'state/grid': .*partitioned 4 times"):
        restore(use, tmp_path / "1", restore_args={"grid": args})


def test_a_missing_file_is_named(use: SimpleNamespace, tmp_path: Path) -> None:
    save(use, tmp_path / "1", {"grid": grid(use), "n": np.arange(3)})
    (tmp_path / "1" / FILE).unlink()
    with pytest.raises(CheckpointError, match=r"1/pario/jax\.Array"):
        restore(use, tmp_path / "1")


def test_a_failed_save_leaves_the_checkpoint_before(
    use: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with use.ocp.CheckpointManager(tmp_path / "run") as manager:
        manager.save(1, args=use.ocp.args.StandardSave({"grid": grid(use)}))
        manager.wait_until_finished()
        with monkeypatch.context() as patch:
            patch.setattr("pario.checkpoint.plan.check_space", refuse_space)
            manager.save(2, args=use.ocp.args.StandardSave({"grid": grid(use)}))
            with pytest.raises(CheckpointError, match="no space"):
                manager.wait_until_finished()
        assert manager.latest_step() == 1
        manager.save(3, args=use.ocp.args.StandardSave({"grid": grid(use)}))
        manager.wait_until_finished()
    with use.ocp.CheckpointManager(tmp_path / "run") as manager:
        assert manager.all_steps() == [1, 3]


def refuse_space(path: str, needed: int) -> None:
    raise CheckpointError(f"{path}: no space: {needed} bytes are needed, 0 are free")


def test_two_values_of_one_key_are_refused(use: SimpleNamespace, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"a\.b: several values have this key"):
        save(use, tmp_path / "1", {"a.b": use.jnp.ones(1), "a": {"b": use.jnp.zeros(1)}})


def test_the_example_of_the_docstring_runs(use: SimpleNamespace) -> None:
    from pario.checkpoint.orbax import handlers

    result = doctest.testmod(handlers)
    assert (result.attempted, result.failed) == (6, 0)
