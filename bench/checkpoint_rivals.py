"""Measures other savers of arrays that are divided among ranks, beside pario.checkpoint.

    python bench/checkpoint_rivals.py [--ranks 4] [--megabytes 256] [--rounds 3] [--directory DIR]
        [--launcher 'mpiexec -n {ranks}'] [--sync] [NAME ...]

All ways save and load the same bytes, which are compared. Prints a table in Markdown for slabs and
one for blocks: medians of seconds of the slowest rank. Each way runs in processes of its own, in
turn with the others; the first of its two turns does not count. Each turn saves to new files, as a
program does at each step: where files are replaced, file systems delete the old ones and write the
new ones out within the time of the save. NAMEs select ways; a way whose package or compiler is not
installed is skipped, with a message. No way waits for the disk; with `--sync` all do, and pario
also flushes the names.
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
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from measuring import make_parser, time_call
from recording import Recorder

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
        """Waits for the disk, for the ways that do not do so themselves."""
        for path in paths if self.sync else ():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)


#: Saving, and loading; each of a turn, whose files are new.
Pair = tuple[Callable[[int], object], Callable[[int], np.ndarray]]


def files(array: Array) -> Pair:
    def path(turn: int) -> Path:
        return array.place / f"{array.comm.rank}-{turn}"

    def save(turn: int) -> None:
        array.data.tofile(path(turn))
        array.flush(path(turn))

    return save, lambda turn: np.fromfile(path(turn)).reshape(array.data.shape)


def pario(array: Array, **options: Any) -> Pair:
    from pario import checkpoint

    writer = checkpoint.Writer(array.comm, array.place, durable=array.sync, **options)

    def load(turn: int) -> np.ndarray:
        state = checkpoint.load(array.comm, array.place, step=turn)
        return state.read("T", array.begin, array.data.shape)

    return (
        lambda turn: writer.save(
            turn, {"T": checkpoint.block(array.data, array.shape, array.begin)}
        ),
        load,
    )


def pario_node(array: Array) -> Pair:
    return pario(array, files="node")


def zarr(array: Array) -> Pair:
    import zarr

    def save(turn: int) -> None:
        path = array.place / f"{turn}.zarr"
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

    return save, lambda turn: zarr.open_array(array.place / f"{turn}.zarr")[array.index]


def adios2(array: Array) -> Pair:
    import adios2

    def path(turn: int) -> Path:
        return array.place / f"{array.comm.rank}-{turn}.bp"  # the package of PyPI has no MPI

    def save(turn: int) -> None:
        with adios2.Stream(str(path(turn)), "w") as stream:
            stream.write("T", array.data, list(array.data.shape), [0, 0, 0], list(array.data.shape))
        array.flush(*path(turn).iterdir())

    def load(turn: int) -> np.ndarray:
        with adios2.FileReader(str(path(turn))) as file:
            return file.read("T")

    return save, load


def serial_hdf5(array: Array) -> Pair:
    import h5py

    def path(turn: int) -> Path:
        return array.place / f"{array.comm.rank}-{turn}.h5"

    def save(turn: int) -> None:
        with h5py.File(path(turn), "w") as file:
            file["T"] = array.data
        array.flush(path(turn))

    def load(turn: int) -> np.ndarray:
        with h5py.File(path(turn)) as file:
            return file["T"][...]

    return save, load


def safetensors(array: Array) -> Pair:
    from safetensors import numpy

    def path(turn: int) -> Path:
        return array.place / f"{array.comm.rank}-{turn}.safetensors"

    def save(turn: int) -> None:
        numpy.save_file({"T": array.data}, path(turn))
        array.flush(path(turn))

    return save, lambda turn: numpy.load_file(path(turn))["T"]


def torch_save(array: Array) -> Pair:
    import torch

    def path(turn: int) -> Path:
        return array.place / f"{array.comm.rank}-{turn}.pt"

    def save(turn: int) -> None:
        torch.save({"T": torch.from_numpy(array.data)}, path(turn))
        array.flush(path(turn))

    return save, lambda turn: torch.load(path(turn))["T"].numpy()


def orbax(array: Array) -> Pair:
    from orbax.checkpoint import StandardCheckpointer

    saver = StandardCheckpointer()

    def path(turn: int) -> Path:
        # its processes are those of JAX, not MPI
        return array.place.resolve() / f"{array.comm.rank}-{turn}"

    def save(turn: int) -> None:
        saver.save(path(turn), {"T": array.data})
        saver.wait_until_finished()
        array.flush(*(file for file in path(turn).rglob("*") if file.is_file()))

    return save, lambda turn: saver.restore(path(turn), {"T": array.data})["T"]


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

    def path(turn: int) -> Path:
        return array.place / str(turn)

    def save(turn: int) -> None:
        writer = checkpoint.FileSystemWriter(path(turn), sync_files=array.sync)
        checkpoint.save({"T": tensor(array.data)}, storage_writer=writer)

    def load(turn: int) -> np.ndarray:
        target = np.empty_like(array.data)
        checkpoint.load(
            {"T": tensor(target)}, storage_reader=checkpoint.FileSystemReader(path(turn))
        )
        return target

    return save, load


@dataclass
class Way:
    """One way of saving: its name, the packages that it needs, and the work of a rank."""

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
    Way("h5py: a file for each process", ("h5py",), serial_hdf5),
    Way("safetensors: a file for each process", ("safetensors",), safetensors),
    Way("torch.save: a file for each process", ("torch",), torch_save),
    Way("Orbax: a checkpoint for each process", ("orbax.checkpoint",), orbax),
)


def run_rank(arguments: argparse.Namespace) -> None:
    """Runs one rank of one way; rank 0 prints the seconds of saving and loading of each turn."""
    from mpi4py import MPI

    comm, blocks = MPI.COMM_WORLD, tuple(arguments.blocks)
    if comm.size != np.prod(blocks):
        sys.exit(f"mpi4py sees {comm.size} ranks: it belongs to another MPI than the launcher")
    part = tuple(length // count for length, count in zip(arguments.shape, blocks, strict=True))
    data = np.random.default_rng(comm.rank).random(part)
    save, load = WAYS[arguments.rank].make(
        Array(comm, Path(arguments.directory), arguments.sync, tuple(arguments.shape), blocks, data)
    )

    def time_slowest(work: Callable[[], object]) -> float:
        comm.Barrier()
        return max(comm.allgather(time_call(work)))

    for turn in range(TURNS):
        found: list[np.ndarray] = []
        saved = time_slowest(partial(save, turn))
        loaded = time_slowest(lambda found=found, turn=turn: found.append(load(turn)))
        assert (found[0] == data).all(), "the loaded array differs from the saved one"
        if comm.rank == 0:
            print(f"{saved:.6f} {loaded:.6f}", flush=True)


def is_installed(name: str) -> bool:
    """Returns whether a module can be imported; one in a package that is missing cannot."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def find_missing(way: Way) -> str:
    """Returns the first package or tool that a way needs and that is not installed."""
    if way.make is not None:
        missing = (name for name in way.packages if not is_installed(name))
        return next(missing, "")
    tool = next((tool for tool in HDF5[:2] if not shutil.which(tool)), "")
    return tool or ("" if find_flags() else f"package {HDF5[2]}")


def find_flags() -> list[str]:
    """Returns the compiler flags of parallel HDF5; none if it is not installed."""
    if not shutil.which("pkg-config"):
        return []
    command = ["pkg-config", "--cflags", "--libs", HDF5[2]]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()


@dataclass(frozen=True)
class Decomposition:
    """An array and its division among the ranks."""

    form: str
    shape: list[int]
    blocks: list[int]  # along each axis

    @property
    def bytes(self) -> int:
        return int(np.prod(self.shape)) * 8


def make_command(
    number: int, arguments: argparse.Namespace, array: Decomposition, place: Path
) -> list[str]:
    """Returns the command that runs all ranks of a way, after compiling the one in C."""
    shape, blocks = list(map(str, array.shape)), list(map(str, array.blocks))
    if WAYS[number].make is not None:
        launcher = shlex.split(arguments.launcher.format(ranks=arguments.ranks))
        words = [*launcher, sys.executable, "-m", "mpi4py", __file__, "--rank", str(number)]
        words += ["--directory", str(place), "--shape", *shape, "--blocks", *blocks]
        return [*words, *(["--sync"] if arguments.sync else [])]
    program = place.parent / "checkpoint_rivals"
    if not program.exists():
        compiler = [HDF5[0], "-O2", "-o", str(program), str(SOURCE), *find_flags()]
        subprocess.run(compiler, check=True)
    words = [HDF5[1], "-n", str(arguments.ranks), str(program), str(place / "T")]
    return [*words, str(TURNS), str(int(arguments.sync)), *shape, *blocks]


def run_way(
    number: int, arguments: argparse.Namespace, array: Decomposition, place: Path
) -> tuple[float, float]:
    """Runs a way; returns the seconds of saving and loading of its last turn."""
    place.mkdir()
    try:
        command = make_command(number, arguments, array, place)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{WAYS[number].name}: {done.stderr[-2000:]}")
        saved, loaded = done.stdout.split()[-2:]
        return float(saved), float(loaded)
    finally:
        shutil.rmtree(place)
        Path(f"{place}.ranks").unlink(missing_ok=True)


def compare_ways(
    arguments: argparse.Namespace,
    selected: list[int],
    array: Decomposition,
    place: Path,
    recorder: Recorder,
) -> None:
    """Measures one decomposition in all ways, and prints its table."""
    found: dict[int, list[tuple[float, float]]] = {number: [] for number in selected}
    for turn in range(1, arguments.rounds + 1):
        for number in selected:
            found[number].append(run_way(number, arguments, array, place / "turn"))
            for operation, seconds in zip(("save", "load"), found[number][-1], strict=True):
                recorder.add(
                    operation=operation,
                    form=array.form,
                    bytes=array.bytes,
                    ranks=arguments.ranks,
                    durable=arguments.sync,
                    way=WAYS[number].name,
                    round=turn,
                    seconds=seconds,
                )
    size, durable = array.bytes / 1e6, ", on the disk" if arguments.sync else ""
    print(f"\n{array.form}, {size:.0f} MB, {arguments.ranks} ranks{durable}\n")
    print("| | save, s | MB/s | load, s | MB/s |\n|---|---|---|---|---|")
    for number, turns in found.items():
        times = [statistics.median(column) for column in zip(*turns, strict=True)]
        cells = " | ".join(f"{seconds:.3f} | {size / seconds:.0f}" for seconds in times)
        print(f"| {WAYS[number].name} | {cells} |", flush=True)


def select_ways(names: list[str]) -> list[int]:
    """Returns the numbers of the named ways that are installed; names the others."""
    selected = []
    for number, way in enumerate(WAYS):
        if names and not any(name in way.name for name in names):
            continue
        if missing := find_missing(way):
            print(f"skipped: {way.name}: {missing} is not installed")
        else:
            selected.append(number)
    return selected


def make_decompositions(ranks: int, megabytes: float) -> list[Decomposition]:
    """Returns slabs and blocks of a cube of about so many megabytes."""
    from pario.checkpoint import divide

    edge = round((megabytes * 1e6 / 8) ** (1 / 3))
    cubes = [ranks // length for length in divide((ranks,) * 3, ranks, 0).shape]
    return [
        Decomposition(form, [max(1, edge // count) * count for count in blocks], blocks)
        for form, blocks in (("slabs", [ranks, 1, 1]), ("blocks", cubes))
    ]


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a part of a way's name")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--megabytes", type=float, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", default=".")
    parser.add_argument("--launcher", default="mpiexec -n {ranks}")
    parser.add_argument("--sync", action="store_true", help="wait for the disk")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    for name in ("--shape", "--blocks"):
        parser.add_argument(name, type=int, nargs="*", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank is not None:
        run_rank(arguments)
        return 0
    selected = select_ways(arguments.names)
    launchers = [
        HDF5[1] if WAYS[number].make is None else shlex.split(arguments.launcher)[0]
        for number in selected
    ]
    with Recorder(
        "checkpoint_rivals",
        arguments,
        directories=[arguments.directory],
        launchers=dict.fromkeys(launchers),
    ) as recorder:
        place = Path(arguments.directory) / "checkpoint-rivals"
        place.mkdir(parents=True)
        try:
            for array in make_decompositions(arguments.ranks, arguments.megabytes):
                compare_ways(arguments, selected, array, place, recorder)
        finally:
            shutil.rmtree(place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
