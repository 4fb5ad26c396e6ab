"""Trains a sharded model (FSDP2) with the parts of torchtitan: records and checkpoints are files of
pario.

    torchrun --standalone --nproc-per-node 2 torchtitan_sharded.py RUN STEPS

trains until step STEPS, on a CPU. A later call continues from the newest checkpoint in the
directory RUN, also on another number of processes, with the same samples in each step. Needs
torchtitan.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
from torch.distributed.fsdp import fully_shard
from torchtitan.components.checkpointer import CheckpointManager
from torchtitan.components.optimizer import LRSchedulersContainer, default_adamw

from pario.checkpoint.dcp import replace_file_system_storage
from pario.records import Dataset, Loader

VALUES = 16  # inputs and a target
SAMPLES, BATCH = 1200, 12  # samples in a step of all processes


class Progress:
    """The step, which torchtitan saves with the model."""

    step = 0

    def state_dict(self) -> dict[str, int]:
        return {"step": self.step}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.step = state["step"]


def make_model() -> torch.nn.Module:
    torch.manual_seed(1)
    layers = (torch.nn.Linear(VALUES - 1, 24), torch.nn.Tanh(), torch.nn.Linear(24, 1))
    model = torch.nn.Sequential(*layers)
    for layer in layers:
        fully_shard(layer)
    return fully_shard(model)


def make_samples(path: Path) -> None:
    values = np.random.default_rng(1).normal(size=(SAMPLES, VALUES)).astype("<f4")
    values[:, -1] = np.sin(values[:, 0]) + values[:, 1]
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(f".{os.getpid()}")
    values.tofile(aside)
    with suppress(FileExistsError):  # of another process
        os.link(aside, path)
    aside.unlink()


def make_loader(run: Path) -> Loader:
    """A loader with the rank of torch.distributed; torchtitan saves its position."""
    make_samples(run / "samples.f32")
    return Loader(
        Dataset(run / "samples.f32", format="fixed", size=4 * VALUES),
        BATCH // torch.distributed.get_world_size(),
        shuffle=True,
        seed=1,
        transform=lambda record: torch.from_numpy(np.frombuffer(record, "<f4").copy()),
        collate=torch.stack,
    )


def train(run: Path, steps: int) -> None:
    replace_file_system_storage()  # checkpoints of torchtitan are files of pario from here on
    model, loader, progress = make_model(), make_loader(run), Progress()
    config = default_adamw(lr=0.01)
    config.implementation = "for-loop"
    optimizers = config.build(model_parts=[model])
    rates = LRSchedulersContainer.Config(warmup_steps=2).build(
        optimizers=optimizers, training_steps=1000
    )
    manager = CheckpointManager.Config(
        enable=True, folder="checkpoints", interval=5, keep_latest_k=2, async_mode="async"
    ).build(
        dataloader=loader,
        model_parts=[model],
        optimizers=optimizers,
        lr_schedulers=rates,
        states={"train_state": progress},
        sd_adapter=None,
        base_folder=str(run),
    )
    manager.load()
    first = progress.step
    while progress.step < steps:
        for samples in loader:
            loss = torch.nn.functional.mse_loss(model(samples[:, :-1]), samples[:, -1:])
            optimizers.zero_grad()
            loss.backward()
            optimizers.step()
            rates.step()
            progress.step += 1
            manager.save(progress.step)
            if progress.step == steps:
                break
    manager.maybe_wait_for_saving()
    manager.close()
    torch.distributed.all_reduce(loss)
    world = torch.distributed.get_world_size()
    if loader.rank == 0:
        print(f"{world} processes: from step {first} to step {steps}, loss {loss / world:.6f}")


def main(words: list[str]) -> int:
    if len(words) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    torch.distributed.init_process_group("gloo")
    train(Path(words[0]), int(words[1]))
    torch.distributed.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
