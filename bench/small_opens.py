"""Measures imports of many processes, and a PyTorch DataLoader over many small files, on a lab
whose opens are slow, with and without the settings `cached_trees` and `loader_ahead`.

    python bench/small_opens.py [--only imports|loader] [--rounds N] [--processes N]
        [--files N] [--workers N]

Imports: `--processes` Python processes import numpy from the lab, one after the other; the table
shows the metadata requests of the first and the most of a further one. Loader: one epoch in random
order, batches of 64; the table shows seconds of the loop. Ways take turns round by round. The lab
needs 1 ms for a lookup and 1 ms for an open, so that opening a file takes 2 ms; the kernel keeps
names for a second.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measuring import find_median_ratio, make_parser
from places import mounted_lab
from recording import Recorder

from pario.prove.lab.mount import Model

IMPORTS = """
import json, os, subprocess, sys
lab, count = sys.argv[1], int(sys.argv[2])
path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), lab + "/tree"]))
counts = []
for _ in range(count):
    os.setxattr(lab, "pario.lab", b"")
    command = [sys.executable, "-c", "import numpy"]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=True)
    counts.append(sum(json.loads(os.getxattr(lab, "pario.lab"))["metadata"].values()))
print(json.dumps(counts))
"""
LOADER = """
import json, os, sys, time, torch
from torch.utils.data import DataLoader, Dataset
class Files(Dataset):
    def __init__(self, folder):
        self.files = sorted(entry.path for entry in os.scandir(folder))
    def __len__(self):
        return len(self.files)
    def __getitem__(self, index):
        with open(self.files[index], "rb", buffering=0) as file:
            return len(file.read())
loader = DataLoader(Files(sys.argv[1]), 64, shuffle=True, num_workers=int(sys.argv[2]))
begin = time.perf_counter()
total = sum(int(batch.sum()) for batch in loader)
print(json.dumps([time.perf_counter() - begin, total]))
"""


@contextmanager
def remount_lab(folder: Path, metadata: int) -> Iterator[Path]:
    """Mounts the lab of a folder with so many nanoseconds for each request about a name."""
    model = Model(rate=0, latency=0, lock_handover=0, metadata=metadata, cache=True)
    with mounted_lab(folder / "lab", model, folder / "backing") as point:
        yield point


def prepare(lab: Path, files: int) -> None:
    import numpy

    package = Path(numpy.__file__).parent
    for source in (package, package.with_name("numpy.libs")):
        if source.exists():
            shutil.copytree(source, lab / "tree" / source.name)
    (lab / "data").mkdir()
    for number in range(files):
        (lab / "data" / f"{number:06}").write_bytes(b"x" * 1000)


def run_traced(folder: Path, setting: str, program: str, *arguments: object) -> list[float]:
    """Runs a Python program under `pario run` with a line of [run]; returns its printed list."""
    settings = folder / "pario.toml"
    settings.write_text(f"[run]\n{setting}\n")
    log = folder / "log"
    shutil.rmtree(log, ignore_errors=True)
    command = [sys.executable, "-m", "pario", "run", "--no-report", "-o", log, "--with", settings]
    done = subprocess.run(
        list(map(str, [*command, "--", sys.executable, "-c", program, *arguments])),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"pario run ended with status {done.returncode}: {done.stderr.strip()}")
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure_imports(recorder: Recorder, folder: Path, lab: Path, rounds: int, count: int) -> None:
    print("| imports | requests of the first | most of another |\n|---|---|---|")
    for number in range(1, rounds + 1):
        for way, setting in (("plain", ""), ("cached", f'cached_trees = "{lab}/tree"')):
            first, *others = run_traced(folder, setting, IMPORTS, lab, count)
            recorder.add(
                part="imports", way=way, size=count, workers=0, round=number, seconds=0.0,
                first_requests=first, most_further_requests=max(others),
            )  # fmt: skip
            print(f"| {way} | {first} | {max(others)} |")


def measure_loader(
    recorder: Recorder, folder: Path, lab: Path, rounds: int, files: int, workers: int
) -> None:
    took: dict[str, list[float]] = {"plain": [], "ahead": []}
    for number in range(1, rounds + 1):
        for way, setting in (("plain", ""), ("ahead", "loader_ahead = true")):
            seconds, total = run_traced(folder, setting, LOADER, lab / "data", workers)
            assert total == 1000 * files
            took[way].append(seconds)
            recorder.add(
                part="loader", way=way, size=files, workers=workers, round=number,
                seconds=seconds, first_requests=0, most_further_requests=0,
            )  # fmt: skip
    print("| loader | seconds |\n|---|---|")
    for way, seconds_of_way in took.items():
        print(f"| {way} | {statistics.median(seconds_of_way):.2f} |")
    print(f"\n{find_median_ratio(took['plain'], took['ahead']):.1f} times as fast")


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--only", choices=("imports", "loader"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        Recorder("small_opens", arguments) as recorder,
    ):
        folder = Path(name)
        (folder / "backing").mkdir()  # not the lab's own, so that its files outlive a mount
        with remount_lab(folder, 0) as lab:
            prepare(lab, 0 if arguments.only == "imports" else arguments.files)
        with remount_lab(folder, 1_000_000) as lab:
            if arguments.only != "loader":
                measure_imports(recorder, folder, lab, arguments.rounds, arguments.processes)
            if arguments.only != "imports":
                measure_loader(
                    recorder, folder, lab, arguments.rounds, arguments.files, arguments.workers
                )


if __name__ == "__main__":
    main()
