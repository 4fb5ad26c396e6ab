"""What else saves arrays that are divided among ranks, beside pario.checkpoint: the same bytes saved and loaded, and compared.

Usage: checkpoint_rivals.py [--ranks 4] [--megabytes 256] [--rounds 3] [--directory DIR] [--launcher 'mpiexec -n {ranks}'] [--sync]
                            [NAME ...]

Prints tables in Markdown, for slabs and for blocks: medians of seconds of the slowest rank. Each way runs in processes of its own, in turn
with the others; the first of its two turns does not count. NAMEs choose among the ways; one whose package or compiler is not here is left
out, by name. `--sync`: what is saved is on the disk.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

TURNS = 2
SOURCE = Path(__file__).with_suffix(".c")
HDF5 = ("mpicc.mpich", "mpiexec.mpich", "hdf5-mpich")  # compiler, launcher, package


@dataclass
class Array:
    """An array, and this rank's part of it."""

    comm: Any
    place: Path
    sync: bool
    shape: tuple[int, ...]
    blocks: tuple[int, ...]  # along each axis
    data: np.ndarray

    @property
    def begin(self) -> tuple[int, ...]:
        at = np.unravel_index(self.comm.rank, self.blocks)
        return tuple(int(one) * length for one, length in zip(at, self.data.shape, strict=True))

    @property
    def index(self) -> tuple[slice, ...]:
        return tuple(
            slice(begin, begin + length)
            for begin, length in zip(self.begin, self.data.shape, strict=True)
        )

    def flush(self, *paths: Path) -> None:
        """For what does not do so itself."""
        for path in paths if self.sync else ():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)


#: Saving, and loading.
Pair = tuple[Callable[[], object], Callable[[], np.ndarray]]


def files(array: Array) -> Pair:
    path = array.place / str(array.comm.rank)

    def save() -> None:
        array.data.tofile(path)
        array.flush(path)

    return save, lambda: np.fromfile(path).reshape(array.data.shape)


def pario(array: Array, **options: Any) -> Pair:
    from pario import checkpoint

    writer = checkpoint.Writer(array.comm, array.place, keep=1, durable=array.sync, **options)
    return (
        lambda: writer.save(1, {"T": checkpoint.block(array.data, array.shape, array.begin)}),
        lambda: checkpoint.load(array.comm, array.place).read("T", array.begin, array.data.shape),
    )


def pario_node(array: Array) -> Pair:
    return pario(array, files="node")


def zarr(array: Array) -> Pair:
    import zarr

    path = array.place / "T.zarr"

    def save() -> None:
        if array.comm.rank == 0:
            zarr.create_array(
                path,
                shape=array.shape,
                chunks=array.data.shape,
                dtype="f8",
                compressors=None,
                overwrite=True,
            )
        array.comm.Barrier()
        zarr.open_array(path)[array.index] = array.data
        array.flush(
            path.joinpath(
                "c",
                *(
                    str(begin // length)
                    for begin, length in zip(array.begin, array.data.shape, strict=True)
                ),
            )
        )

    return save, lambda: zarr.open_array(path)[array.index]


def adios2(array: Array) -> Pair:
    import adios2

    path = array.place / f"{array.comm.rank}.bp"  # the package of PyPI has no MPI

    def save() -> None:
        with adios2.Stream(str(path), "w") as stream:
            stream.write("T", array.data, list(array.data.shape), [0, 0, 0], list(array.data.shape))
        array.flush(*path.iterdir())

    def load() -> np.ndarray:
        with adios2.FileReader(str(path)) as file:
            return file.read("T")

    return save, load


def torch(array: Array) -> Pair:
    import torch
    from torch import distributed
    from torch.distributed import checkpoint
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard

    rank, ranks = array.comm.rank, array.comm.size
    distributed.init_process_group(
        "gloo", init_method=f"file://{array.place}.ranks", rank=rank, world_size=ranks
    )
    divided = [axis for axis, count in enumerate(array.blocks) if count > 1]
    mesh = init_device_mesh("cpu", tuple(array.blocks[axis] for axis in divided))

    def tensor(content: np.ndarray) -> Any:
        return DTensor.from_local(
            torch.from_numpy(content), mesh, [Shard(axis) for axis in divided]
        )

    def save() -> None:
        writer = checkpoint.FileSystemWriter(array.place, sync_files=array.sync, overwrite=True)
        checkpoint.save({"T": tensor(array.data)}, storage_writer=writer)

    def load() -> np.ndarray:
        target = np.empty_like(array.data)
        checkpoint.load(
            {"T": tensor(target)}, storage_reader=checkpoint.FileSystemReader(array.place)
        )
        return target

    return save, load


@dataclass
class Way:
    """One way of saving: what it is called, the packages it needs, and what a rank does."""

    name: str
    packages: tuple[str, ...]
    make: Callable[[Array], Pair] | None  # None: a program of its own


WAYS = (
    Way("a file for each process", (), files),
    Way("pario.checkpoint", ("h5py",), pario),
    Way('pario.checkpoint, files="node"', ("h5py",), pario_node),
    Way("parallel HDF5 (ROMIO)", (), None),
    Way("ADIOS2 (PyPI: a file for each process)", ("adios2",), adios2),
    Way("zarr", ("zarr",), zarr),
    Way("torch.distributed.checkpoint", ("torch",), torch),
)


def rank_program(arguments: argparse.Namespace) -> None:
    """One of the ranks of one way. Rank 0 prints seconds of saving and of loading, turn by turn."""
    from mpi4py import MPI

    comm, blocks = MPI.COMM_WORLD, tuple(arguments.blocks)
    if comm.size != np.prod(blocks):
        sys.exit(f"mpi4py sees {comm.size} ranks: it belongs to another MPI than the launcher")
    part = tuple(length // count for length, count in zip(arguments.shape, blocks, strict=True))
    data = np.random.default_rng(comm.rank).random(part)
    save, load = WAYS[arguments.rank].make(
        Array(comm, Path(arguments.directory), arguments.sync, tuple(arguments.shape), blocks, data)
    )

    def slowest(work: Callable[[], object]) -> float:
        comm.Barrier()
        begin = time.perf_counter()
        work()
        return max(comm.allgather(time.perf_counter() - begin))

    for _ in range(TURNS):
        found: list[np.ndarray] = []
        saved, loaded = slowest(save), slowest(lambda found=found: found.append(load()))
        assert (found[0] == data).all(), "what was loaded is not what was saved"
        if comm.rank == 0:
            print(f"{saved:.6f} {loaded:.6f}", flush=True)


def missing(way: Way) -> str:
    """What a way needs and is not here."""
    if way.make is not None:
        return next(
            (package for package in way.packages if importlib.util.find_spec(package) is None), ""
        )
    return next((tool for tool in HDF5[:2] if not shutil.which(tool)), "") or (
        "" if flags() else f"package {HDF5[2]}"
    )


def flags() -> list[str]:
    """Of compiling with parallel HDF5; none where it is not here."""
    if not shutil.which("pkg-config"):
        return []
    return subprocess.run(
        ["pkg-config", "--cflags", "--libs", HDF5[2]], capture_output=True, text=True, check=False
    ).stdout.split()


def command(
    number: int, arguments: argparse.Namespace, shape: list[int], blocks: list[int], place: Path
) -> list[str]:
    if WAYS[number].make is not None:
        words = [
            *shlex.split(arguments.launcher.format(ranks=arguments.ranks)),
            sys.executable,
            "-m",
            "mpi4py",
            __file__,
        ]
        words += [
            "--rank",
            str(number),
            "--directory",
            str(place),
            "--shape",
            *map(str, shape),
            "--blocks",
            *map(str, blocks),
        ]
        return [*words, *(["--sync"] if arguments.sync else [])]
    program = place.parent / "checkpoint_rivals"
    if not program.exists():
        subprocess.run([HDF5[0], "-O2", "-o", str(program), str(SOURCE), *flags()], check=True)
    words = [
        HDF5[1],
        "-n",
        str(arguments.ranks),
        str(program),
        str(place / "T.h5"),
        str(TURNS),
        str(int(arguments.sync)),
    ]
    return [*words, *map(str, shape), *map(str, blocks)]


def measured(
    number: int, arguments: argparse.Namespace, shape: list[int], blocks: list[int], place: Path
) -> tuple[float, float]:
    """Seconds of the last turn."""
    place.mkdir()
    try:
        done = subprocess.run(
            command(number, arguments, shape, blocks, place),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"{WAYS[number].name}: {done.stderr[-2000:]}")
        saved, loaded = done.stdout.split()[-2:]
        return float(saved), float(loaded)
    finally:
        shutil.rmtree(place)
        Path(f"{place}.ranks").unlink(missing_ok=True)


def compare(
    arguments: argparse.Namespace, chosen: list[int], form: str, blocks: list[int], place: Path
) -> None:
    """Prints the table of one decomposition."""
    edge = round((arguments.megabytes * 1e6 / 8) ** (1 / 3))
    shape = [max(1, edge // count) * count for count in blocks]
    size = np.prod(shape) * 8 / 1e6
    found: dict[int, list[tuple[float, float]]] = {number: [] for number in chosen}
    for _ in range(arguments.rounds):
        for number in chosen:
            found[number].append(measured(number, arguments, shape, blocks, place / "turn"))
    durable = ", on the disk" if arguments.sync else ""
    print(
        f"\n{form}, {size:.0f} MB, {arguments.ranks} ranks{durable}\n\n| | save, s | MB/s | load, s | MB/s |\n|---|---|---|---|---|"
    )
    for number, turns in found.items():
        saved, loaded = (statistics.median(turn[which] for turn in turns) for which in (0, 1))
        print(
            f"| {WAYS[number].name} | {saved:.3f} | {size / saved:.0f} | {loaded:.3f} | {size / loaded:.0f} |",
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="of ways: part of a name")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--megabytes", type=float, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", default=".")
    parser.add_argument("--launcher", default="mpiexec -n {ranks}")
    parser.add_argument("--sync", action="store_true", help="what is saved is on the disk")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    for name in ("--shape", "--blocks"):
        parser.add_argument(name, type=int, nargs="*", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank is not None:
        rank_program(arguments)
        return 0
    from pario.checkpoint import divide

    place = Path(arguments.directory) / "checkpoint-rivals"
    place.mkdir(parents=True)
    try:
        wanted = [
            number
            for number, way in enumerate(WAYS)
            if not arguments.names or any(name in way.name for name in arguments.names)
        ]
        for number in wanted:
            if missing(WAYS[number]):
                print(f"left out: {WAYS[number].name}: {missing(WAYS[number])} is not here")
        chosen = [number for number in wanted if not missing(WAYS[number])]
        cubes = [
            arguments.ranks // length
            for length in divide((arguments.ranks,) * 3, arguments.ranks, 0).shape
        ]
        for form, blocks in (("slabs", [arguments.ranks, 1, 1]), ("blocks", cubes)):
            compare(arguments, chosen, form, blocks, place)
    finally:
        shutil.rmtree(place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
