"""Trains a small network with JAX, on one process or several, and resumes within an epoch.

    python jax_train.py make samples.bin                 # makes 4096 samples of fixed size
    python jax_train.py fit samples.bin 100              # trains up to step 100; resumes
    python jax_train.py fit samples.bin 150 HOST:PORT 2 0   # and the same with 1 on another host

The batch of all processes is the same on any number of them: so is the result.
Needs jax and orbax-checkpoint.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import pario.checkpoint.orbax
from pario.records import Dataset, Loader

COUNT, CLASSES, VALUES, HIDDEN = 4096, 4, 64, 32
SIZE = 4 * (VALUES + 1)  # bytes of a sample: a class and its values, as float32
BATCH, RATE, EVERY = 64, 0.1, 20


def make(path: Path) -> None:
    """Makes samples around the centre of their class, sorted by class."""
    random = np.random.default_rng(1)
    kinds = np.arange(COUNT) * CLASSES // COUNT
    values = random.normal(size=(CLASSES, VALUES))[kinds] + 2 * random.normal(size=(COUNT, VALUES))
    np.column_stack([kinds, values]).astype("<f4").tofile(path)


def decode(record: memoryview) -> np.ndarray:
    """The class and the values of a sample."""
    return np.frombuffer(record, "<f4")


def make_state(sharding: NamedSharding) -> dict:
    """The parameters before the first step, a copy on each device."""
    random = np.random.default_rng(2)
    shapes = {"in": (VALUES, HIDDEN), "out": (HIDDEN, CLASSES)}
    first = {name: random.normal(size=shape) / shape[0] ** 0.5 for name, shape in shapes.items()}
    return {
        name: jax.make_array_from_callback(one.shape, sharding, one.astype("f4").__getitem__)
        for name, one in first.items()
    }


def loss_of(state: dict, batch: jax.Array) -> jax.Array:
    """The mean loss of a batch."""
    kinds, values = batch[:, 0].astype(jnp.int32), batch[:, 1:]
    scores = jax.nn.log_softmax(jax.nn.relu(values @ state["in"]) @ state["out"])
    return -jnp.take_along_axis(scores, kinds[:, None], axis=1).mean()


@jax.jit
def step(state: dict, batch: jax.Array) -> tuple[dict, jax.Array]:
    """One step of gradient descent."""
    loss, slopes = jax.value_and_grad(loss_of)(state, batch)
    return jax.tree.map(lambda one, slope: one - RATE * slope, state, slopes), loss


def fit(path: Path, steps: int) -> None:
    """Trains up to a number of steps, from the newest checkpoint on."""
    pario.checkpoint.orbax.register()
    mesh = Mesh(np.array(jax.devices()), ("data",))
    split, whole = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("data",), ()))
    dataset = Dataset(path, format="fixed", size=SIZE)
    loader = Loader(  # rank and world are those of jax.distributed
        dataset,
        BATCH // jax.process_count(),
        shuffle=True,
        seed=1,
        transform=decode,
        collate=np.stack,
        drop_last=True,
    )
    state, done = make_state(whole), 0
    options = ocp.CheckpointManagerOptions(max_to_keep=2)
    with ocp.CheckpointManager(Path("checkpoints").absolute(), options=options) as manager:
        if (done := manager.latest_step() or 0) > 0:
            shapes = jax.tree.map(ocp.utils.to_shape_dtype_struct, state)
            found = manager.restore(
                done,
                args=ocp.args.Composite(
                    state=ocp.args.StandardRestore(shapes), loader=ocp.args.JsonRestore()
                ),
            )
            state = found.state
            loader.load_state_dict(found.loader)
            print(f"resumes after step {done}, in epoch {loader.epoch}")
        batches = loader.forever()
        for number in range(done + 1, steps + 1):
            # Each process puts its part of the batch on its own devices.
            batch = jax.make_array_from_process_local_data(split, next(batches))
            state, loss = step(state, batch)
            if number % EVERY == 0 or number == steps:
                items = {
                    "state": ocp.args.StandardSave(state),
                    "loader": ocp.args.JsonSave(loader.state_dict()),
                }
                manager.save(number, args=ocp.args.Composite(**items))  # in the background
                print(f"step {number}: loss {loss:.3f}")


def main() -> None:
    """Runs the command of the arguments."""
    words = sys.argv[1:]
    if words[:1] == ["make"] and len(words) == 2:
        make(Path(words[1]))
    elif words[:1] == ["fit"] and len(words) in (3, 6):
        if len(words) == 6:
            jax.distributed.initialize(words[3], int(words[4]), int(words[5]))
        fit(Path(words[1]), int(words[2]))
    else:
        print(__doc__, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
