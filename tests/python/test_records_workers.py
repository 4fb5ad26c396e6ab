"""Transforms of a Loader in threads and processes: an error there is raised with the record."""

import multiprocessing
import os
import sys
from pathlib import Path
from types import FunctionType

import pytest

from pario.errors import ParioError
from pario.records import Dataset, Loader
from tests.support.commands import run_command


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    path = tmp_path / "numbers"
    path.write_bytes(bytes(range(200)))
    return Dataset(path, format="fixed", size=1)


def ends_at_77(record: bytes) -> int:
    if record[0] == 77:
        os._exit(1)
    return record[0]


def makes_functions(record: bytes) -> FunctionType:
    return lambda: record


def fails_at_77(record: bytes) -> int:
    return 1 // (record[0] - 77)


@pytest.mark.system
@pytest.mark.parametrize("errors", ["raise", "skip"])
def test_an_ended_process_is_an_error_with_the_record(dataset, errors):
    with pytest.raises(ParioError, match=r"record(s.*)? 77\b.*: transform: its process ended"):
        list(Loader(dataset, 10, transform=ends_at_77, workers=2, processes=True, errors=errors))


def test_functions_that_cannot_be_sent_to_processes_are_an_error(dataset):
    with pytest.raises(
        ParioError,
        match=r"transform: expected a function of a module, which processes can import: .*lambda",
    ):
        list(Loader(dataset, 10, transform=lambda record: record, workers=2, processes=True))
    with pytest.raises(ParioError, match="transform: its results cannot be sent from a process"):
        list(Loader(dataset, 10, transform=makes_functions, workers=2, processes=True))


@pytest.mark.system
@pytest.mark.parametrize("workers, processes", [(0, False), (2, False), (2, True)])
def test_a_record_that_cannot_be_transformed(dataset, workers, processes):
    how = {"transform": fails_at_77, "workers": workers, "processes": processes}
    with pytest.raises(ParioError, match="record 77: transform: ZeroDivisionError"):
        list(Loader(dataset, 10, **how))
    loader = Loader(dataset, 10, errors="skip", **how)
    assert sum(len(batch) for batch in loader) == 199
    assert loader.stats.skipped == 1


def test_processes_of_a_worker_of_a_data_loader_are_refused(dataset):
    """A daemonic worker process may have no child processes."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(False)
    loader = Loader(dataset, 10, transform=fails_at_77, workers=1, processes=True)
    worker = context.Process(target=send_error, args=(loader, sender), daemon=True)
    worker.start()
    assert (
        "processes=True: a worker process of a DataLoader can have no processes" in receiver.recv()
    )
    worker.join()


def send_error(loader: Loader, sender) -> None:
    try:
        next(iter(loader))
    except BaseException as error:
        sender.send(f"{type(error).__name__}: {error}")


@pytest.mark.system
def test_a_program_that_processes_cannot_import_is_an_error(dataset, tmp_path):
    """Without a ``__main__`` guard each process would run the program again."""
    program = tmp_path / "program.py"
    program.write_text(f"""
from pario.records import Dataset, Loader
def same(record):
    return record
data = Dataset({str(dataset.path)!r}, format="fixed", size=1)
list(Loader(data, 10, transform=same, workers=1, processes=True))
""")
    ended = run_command([sys.executable, program])
    assert ended.returncode == 1
    assert (
        "ended before its first record: expected if __name__ == '__main__'"
        in ended.stderr.splitlines()[-1]
    )
