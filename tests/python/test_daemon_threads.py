"""Daemon threads that run pario's own code when Python ends: the process ends normally."""

import sys

import pytest

from pario.records import Dataset
from tests.support.commands import run_command

_BEGIN = """
import sys, threading, time
from pario.records import Dataset, Loader

dataset = Dataset(sys.argv[1], format="fixed", size=8)
begun = threading.Semaphore(0)
"""
#: An object that is destroyed last when Python ends; it sleeps, so that the threads try to return.
_END = """
class Last:
    def __del__(self, sleep=time.sleep):
        sleep(0.2)

last = Last()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
for _ in range(3):
    begun.acquire()
"""
_WORK = {
    "batches": """
def work():
    for batch in Loader(dataset, 1, shuffle=True).forever():
        begun.release()
""",
    "calls of Python": """
def show(done, whole):
    begun.release()
    time.sleep(0.001)

def work():
    while True:
        dataset.file.verify(1, 10, show)
""",
}


@pytest.mark.parametrize("work", _WORK)
def test_the_process_ends_well(tmp_path, work):
    path = tmp_path / "numbers"
    path.write_bytes(bytes(8000))
    Dataset(path, format="fixed", size=8)  # makes the index
    ended = run_command([sys.executable, "-c", _BEGIN + _WORK[work] + _END, path])
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
    assert "terminate" not in ended.stderr
