"""Trains a model with Accelerate: records and sharded checkpoints are files of pario.

    torchrun --standalone --nproc-per-node 2 accelerate_loader.py RUN STEPS     # on a CPU
    accelerate launch --use_fsdp --fsdp_version 2 --fsdp_state_dict_type SHARDED_STATE_DICT \\
        --num_processes 2 accelerate_loader.py RUN STEPS        # on GPUs

trains until step STEPS. A later call continues from the newest checkpoint in the directory RUN,
also on another number of processes, with the same samples in each step. With FSDP the model and
the optimizer are in files of pario. Needs accelerate.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator

from pario.checkpoint.dcp import replace_file_system_storage
from pario.records import Dataset, Loader

VALUES = 16  # inputs and a target
SAMPLES, BATCH = 1200, 12  # samples in a step of all processes
INTERVAL = 5  # steps between checkpoints


def make_samples(path: Path) -> None:
    values = np.random.default_rng(1).normal(size=(SAMPLES, VALUES)).astype("<f4")
    values[:, -1] = np.sin(values[:, 0]) + values[:, 1]
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(f".{os.getpid()}")
    values.tofile(aside)
    with suppress(FileExistsError):  # of another process
        os.link(aside, path)
    aside.unlink()


def make_loader(run: Path, accelerator: Accelerator) -> Loader:
    make_samples(run / "samples.f32")
    return Loader(
        Dataset(run / "samples.f32", format="fixed", size=4 * VALUES),
        BATCH // accelerator.num_processes,
        shuffle=True,
        seed=1,
        rank=accelerator.process_index,
        world=accelerator.num_processes,
        transform=lambda record: torch.from_numpy(np.frombuffer(record, "<f4").copy()),
        collate=torch.stack,
    )


def step_of(path: Path) -> int:
    return int(path.name.removeprefix("step-"))


def train(run: Path, steps: int) -> None:
    replace_file_system_storage()  # sharded checkpoints are files of pario from here on
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    loader = make_loader(run, accelerator)  # gives each process its own batches: not prepared
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(VALUES - 1, 24), torch.nn.Tanh(), torch.nn.Linear(24, 1)
    )
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=0.01))
    accelerator.register_for_checkpointing(loader)  # its position
    newest = max(run.glob("step-*"), key=step_of, default=None)
    if newest:
        accelerator.load_state(newest)
    first = step = step_of(newest) if newest else 0
    while step < steps:
        for samples in loader:
            samples = samples.to(accelerator.device, non_blocking=True)
            loss = torch.nn.functional.mse_loss(model(samples[:, :-1]), samples[:, -1:])
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            step += 1
            if step % INTERVAL == 0:
                accelerator.save_state(run / f"step-{step}")
            if step == steps:
                break
    mean = accelerator.reduce(loss.detach(), "mean")
    accelerator.print(
        f"{accelerator.num_processes} processes: from step {first} to step {steps}, loss {mean:.6f}"
    )


def main(words: list[str]) -> int:
    if len(words) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    train(Path(words[0]), int(words[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
