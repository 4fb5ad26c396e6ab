"""One process of a program with JAX and Orbax:
``orbax_processes.py ACTION DIRECTORY PORT PROCESSES PROCESS``."""

import os
import sys
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import jax
import numpy as np
import orbax.checkpoint as ocp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import pario.checkpoint.orbax
from pario.checkpoint import CheckpointError

GRID = np.arange(96, dtype=np.float32).reshape(8, 12)
SCALE = np.linspace(0, 1, 12)


def make_sharding(rows: int, *spec: str | None) -> NamedSharding:
    devices = np.array(jax.devices()).reshape(rows, -1)
    return NamedSharding(Mesh(devices, ("a", "b")), PartitionSpec(*spec))


def make(array: np.ndarray, sharding: NamedSharding) -> jax.Array:
    return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])


def check(found: jax.Array, expected: np.ndarray, sharding: NamedSharding) -> None:
    assert found.sharding == sharding, found.sharding
    assert found.shape == expected.shape, found.shape
    for shard in found.addressable_shards:
        assert np.array_equal(shard.data, expected[shard.index]), shard


def save(manager: ocp.CheckpointManager) -> None:
    """In the background, two items at a time."""
    for step in range(3):
        grid = make(GRID + step, make_sharding(2, "a", "b"))
        copies = make(SCALE.astype(np.float32), make_sharding(2))
        items = {
            "state": {"grid": grid, "copies": copies, "step": step},
            "loader": {"seen": np.arange(3) + jax.process_index(), "grid": grid},
        }
        saved = {name: ocp.args.PyTreeSave(one) for name, one in items.items()}
        manager.save(step, args=ocp.args.Composite(**saved))
    manager.wait_until_finished()
    assert manager.all_steps() == [1, 2], manager.all_steps()


def restore(manager: ocp.CheckpointManager) -> None:
    """On all meshes of these devices."""
    count = len(jax.devices())
    for rows, spec in ((1, ("a", "b")), (count, (None, None)), (2, ("b",)), (count, (None, "a"))):
        sharding = make_sharding(rows, *spec)
        args = ocp.ArrayRestoreArgs(sharding=sharding)
        whole = ocp.ArrayRestoreArgs(sharding=make_sharding(1))
        found = manager.restore(
            2,
            args=ocp.args.Composite(
                state=ocp.args.PyTreeRestore(
                    restore_args={"grid": args, "copies": whole, "step": ocp.RestoreArgs()}
                ),
                loader=ocp.args.PyTreeRestore(
                    restore_args={"grid": args, "seen": ocp.RestoreArgs()}
                ),
            ),
        )
        check(found.state["grid"], GRID + 2, sharding)
        check(found.loader["grid"], GRID + 2, sharding)
        check(found.state["copies"], SCALE.astype(np.float32), make_sharding(1))
        assert found.state["step"] == 2 and found.loader["seen"].tolist() == [0, 1, 2]


def restore_damaged(manager: ocp.CheckpointManager) -> None:
    """Each process refuses, also the ones that read no damaged part."""
    try:
        restore(manager)
    except CheckpointError as error:
        assert "state/grid" in str(error), error
    else:
        raise AssertionError("damage was not noticed")


def save_own_array(manager: ocp.CheckpointManager) -> None:
    """An array of each process by itself cannot be saved."""
    try:
        manager.save(9, args=ocp.args.PyTreeSave({"mine": jax.numpy.ones(2)}))
    except CheckpointError as error:
        assert "mine: an array of one process" in str(error), error
    else:
        raise AssertionError("the array was saved")


def main(action: str, directory: Path, port: str, count: int, process: int) -> None:
    jax.distributed.initialize(f"127.0.0.1:{port}", count, process)
    assert len(jax.devices()) == 2 * count
    pario.checkpoint.orbax.register(durable=False)
    options = ocp.CheckpointManagerOptions(max_to_keep=2)
    with ocp.CheckpointManager(directory, options=options) as manager:
        {one.__name__: one for one in (save, restore, restore_damaged, save_own_array)}[action](
            manager
        )
    print(f"{action} by process {process} of {count}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
