"""Trains a sharded model (FSDP2) with Lightning: records and checkpoints are files of pario.

    torchrun --standalone --nproc-per-node 2 lightning_sharded.py RUN STEPS

trains until step STEPS, on a CPU. A later call continues from the newest checkpoint in the
directory RUN, also on another number of processes, with the same samples in each step. Needs
lightning.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

import lightning
import numpy as np
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.strategies import ModelParallelStrategy
from torch.distributed.fsdp import fully_shard

from pario.checkpoint.dcp import replace_file_system_storage
from pario.records import Dataset, Loader

VALUES = 16  # inputs and a target
SAMPLES, BATCH = 1200, 12  # samples in a step of all processes


class Regression(lightning.LightningModule):
    def configure_model(self) -> None:
        torch.manual_seed(1)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(VALUES - 1, 24), torch.nn.Tanh(), torch.nn.Linear(24, 1)
        )
        mesh = self.device_mesh["data_parallel"]
        for layer in self.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(self.layers, mesh=mesh)

    def training_step(self, samples: torch.Tensor) -> torch.Tensor:
        loss = torch.nn.functional.mse_loss(self.layers(samples[:, :-1]), samples[:, -1:])
        self.log("loss", loss, sync_dist=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=0.01)


def make_samples(path: Path) -> None:
    values = np.random.default_rng(1).normal(size=(SAMPLES, VALUES)).astype("<f4")
    values[:, -1] = np.sin(values[:, 0]) + values[:, 1]
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(f".{os.getpid()}")
    values.tofile(aside)
    with suppress(FileExistsError):  # of another process
        os.link(aside, path)
    aside.unlink()


def train(run: Path, steps: int) -> None:
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    make_samples(run / "samples.f32")
    loader = Loader(
        Dataset(run / "samples.f32", format="fixed", size=4 * VALUES),
        BATCH // world,
        shuffle=True,
        seed=1,
        rank=rank,
        world=world,
        transform=lambda record: torch.from_numpy(np.frombuffer(record, "<f4").copy()),
        collate=torch.stack,
    )
    replace_file_system_storage()  # checkpoints of Lightning are files of pario from here on
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=world,
        strategy=ModelParallelStrategy(data_parallel_size=world, tensor_parallel_size=1),
        max_steps=steps,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
        callbacks=[ModelCheckpoint(run, filename="{step}", every_n_train_steps=5, save_top_k=-1)],
    )
    found = sorted(run.glob("step=*.ckpt"), key=lambda path: int(path.stem.removeprefix("step=")))
    model = Regression()
    trainer.fit(model, loader, ckpt_path=found[-1] if found else None)
    if rank == 0:
        start = found[-1].name if found else "the beginning"
        loss = trainer.callback_metrics["loss"]
        print(f"{world} processes: from {start} to step {trainer.global_step}, loss {loss:.6f}")


def main(words: list[str]) -> int:
    if len(words) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    train(Path(words[0]), int(words[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
