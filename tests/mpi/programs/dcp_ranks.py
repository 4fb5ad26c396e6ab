"""Saves and loads by PyTorch's distributed checkpoint API on several numbers of processes, each
forked from this one: ``dcp_ranks.py DIRECTORY``."""

import os
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from torch import distributed
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

from pario import checkpoint
from pario.checkpoint.dcp import Reader, Writer

GRID = torch.arange(35.0).reshape(7, 5)
HALF = torch.arange(12).to(torch.bfloat16).reshape(4, 3)


def run(ranks: int, store: Path, program: Callable[[int], None]) -> list[int]:
    """Runs a program on forked ranks. Returns their exit statuses."""
    store.unlink(missing_ok=True)
    children = []
    for rank in range(ranks):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                distributed.init_process_group(
                    "gloo", init_method=f"file://{store}", rank=rank, world_size=ranks
                )
                program(rank)
                distributed.destroy_process_group()
                status = 0
            except BaseException as error:
                print(f"{program.__name__}, rank {rank} of {ranks}: {error}", file=sys.stderr)
            finally:
                sys.stderr.flush()
                os._exit(status)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def make_model(seed: int) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Linear(7, 3))
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.125)
    model(torch.ones(2, 5)).sum().backward()
    optimizer.step()
    return model, optimizer


def make_state(seed: int, placements: list) -> dict:
    model, optimizer = make_model(seed)
    of_model, of_optimizer = get_state_dict(model, optimizer)
    mesh = init_device_mesh("cpu", (1, distributed.get_world_size()))
    return {
        "model": of_model,
        "optimizer": of_optimizer,
        "grid": distribute_tensor(GRID if seed else torch.zeros_like(GRID), mesh, placements),
        "half": HALF.clone() if seed else torch.zeros_like(HALF),
        "progress": {"step": 40 + seed, "data": b"shard %d" % seed, "none": None},
    }


def gather_tensor(value: object) -> object:
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def flat(state: dict, name: str = "") -> dict:
    found = {}
    for key, value in state.items():
        found |= (
            flat(value, f"{name}.{key}")
            if isinstance(value, dict)
            else {f"{name}.{key}": gather_tensor(value)}
        )
    return found


def equal(one: object, other: object) -> bool:
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    return type(one) is type(other) and one == other


class Interrupted(Reader):
    """Rank 1 is interrupted before it meets the others."""

    def _require_state(self) -> object:
        if distributed.get_rank() == 1:
            raise KeyboardInterrupt
        return super()._require_state()


def load_interrupted(path: Path) -> Callable[[int], None]:
    """A program of which all ranks fail at once."""

    def load(rank: int) -> None:
        dcp.load({"grid": torch.zeros_like(GRID)}, storage_reader=Interrupted(path))

    return load


def count_warnings(path: Path) -> Callable[[int], None]:
    """A program that counts the warnings of the default group, which async_save and the program
    share, and of another one."""

    def save(rank: int) -> None:
        for group, expected in ((None, rank == 0), (distributed.new_group(backend="gloo"), False)):
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                writer = Writer(path, process_group=group, durable=False)
                saving = dcp.async_save({"n": 1}, storage_writer=writer, process_group=group)
                saving.result()
            texts = [str(one.message) for one in warned]
            assert sum("async_save communicates in a thread" in one for one in texts) == expected

    return save


def main(directory: Path) -> None:
    store = directory / "store"
    path, expected = directory / "ckpt", directory / "expected.pt"

    def save(rank: int) -> None:
        """Also values of one rank: those of a stage of a pipeline, and of a loader."""
        state = make_state(1, [Replicate(), Shard(0)])
        if rank == 0:
            print(f"saved by {distributed.get_world_size()}")
        torch.save(flat(state), expected if rank == 0 else os.devnull)
        own = {
            f"stage{rank}": {"w": torch.full((rank + 1,), float(rank))},
            f"loader{rank}": {"rank": rank, "seen": b"seen by %d" % rank},
        }
        dcp.save(state | own, storage_writer=Writer(path, step=10, durable=False))

    def load(rank: int) -> None:
        """Into another division, by other ranks."""
        state = make_state(0, [Replicate(), Shard(1)])
        state |= {"stage1": {"w": torch.zeros(2)}} if rank == 0 else {}
        state |= {f"loader{rank % 2}": {"rank": -1, "seen": b""}}
        dcp.load(state, storage_reader=Reader(path))
        model, optimizer = make_model(2)
        set_state_dict(
            model,
            optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )
        wanted = torch.load(expected, weights_only=True)
        found = flat(state)
        assert not wanted.keys() - found.keys(), wanted.keys() - found.keys()
        for name, value in wanted.items():
            assert equal(found[name], value), (name, found[name], value)
        again = get_state_dict(model, optimizer)[0]
        assert equal(gather_tensor(again["0.weight"]), wanted[".model.0.weight"])
        assert rank or state["stage1"]["w"].tolist() == [1.0, 1.0]
        mine = rank % 2
        assert state[f"loader{mine}"] == {"rank": mine, "seen": b"seen by %d" % mine}

    def save_in_background(rank: int) -> None:
        state = make_state(1, [Replicate(), Shard(0)])
        pending = dcp.async_save(
            state, storage_writer=Writer(directory / "later", keep=1, durable=False)
        )
        state["grid"].zero_()
        with checkpoint.Writer(distributed.group.WORLD, directory / "now", durable=False) as now:
            now.save(1, {"rank": checkpoint.per_rank(rank)})  # at the same time
        pending.result()
        into = {"grid": torch.zeros_like(GRID)}
        dcp.load(into, storage_reader=Reader(directory / "later"))
        assert torch.equal(into["grid"], GRID)

    def save_and_die(rank: int) -> None:
        class Planner(DefaultSavePlanner):
            def resolve_data(self, item: object) -> object:
                if rank == 1:
                    os.kill(os.getpid(), signal.SIGKILL)
                return super().resolve_data(item)

        state = make_state(0, [Replicate(), Shard(0)])
        dcp.save(
            state,
            storage_writer=Writer(path, keep=1, durable=False),
            planner=Planner(),
        )

    counts = [int(word) for word in sys.argv[2:]] or [2, 4]
    assert run(counts[0], store, save) == [0] * counts[0]
    assert checkpoint.load(None, path).step == 10
    for count in counts:
        assert run(count, store, load) == [0] * count, count
    assert run(2, store, load_interrupted(path)) == [1, 1]
    for program in (save_in_background, count_warnings(directory / "warned")):
        assert run(2, store, program) == [0, 0]
    assert run(2, store, save_and_die) == [1, -signal.SIGKILL]
    assert run(1, store, load) == [0]
    assert checkpoint.load(None, path).step == 10


if __name__ == "__main__":
    main(Path(sys.argv[1]))
