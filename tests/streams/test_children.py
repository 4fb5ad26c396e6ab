"""Buffered files and forks: buffering pauses while a child has copies of descriptors."""

from __future__ import annotations

import sys

import pytest

from pario.see.tables import read
from tests.streams.conftest import Done, Start

HEAD = """
import os, signal, subprocess, sys, time
out = open('out.dat', 'wb', 0)
def numbers(count):
    for i in range(count): out.write(b'%d\\n' % i)
def child(work):
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    return pid
"""
LINES = b"".join(b"%d\n" % i for i in range(1000))


def run_traced(start: Start, script: str) -> tuple[Done, dict[str, int], str]:
    """Returns the run, the file's counters in the first process, and why buffering ended."""
    done = start(
        sys.executable,
        "-c",
        HEAD + script,
        streams="*.dat:size=64K:delay=0",
        env={"PARIO_TRACE_DIR": "log"},
    )
    assert done.status == 0, done.stderr
    job = read([done.folder / "log"])
    first = min(range(len(job.processes)), key=lambda row: job.processes["start"][row])
    (row,) = [
        row
        for row in job.records
        if row["process"] == first and job.path(row["file"]).endswith("/out.dat")
    ]
    reason = next(
        (
            it.reason
            for it in job.audit
            if it.key == "buffers" and it.path.endswith("/out.dat") and it.reason
        ),
        "",
    )
    return (
        done,
        {
            name: int(row[name])
            for name in ("writes", "buffered_write_bytes", "bytes_written", "system_writes")
        },
        reason,
    )


ENDS = {
    "exits": "os.waitpid(child(lambda: None), 0)",
    "is killed": "pid = child(lambda: time.sleep(60)); os.kill(pid, 9); os.waitpid(pid, 0)",
    "executes another program": (
        "pid = child(lambda: os.execlp('sleep', 'sleep', '0'))\nos.waitpid(pid, 0)"
    ),
    "had children of its own": "os.waitpid(child(lambda: os.waitpid(child(lambda: None), 0)), 0)",
    "is one of several": "for pid in [child(lambda: None) for _ in range(5)]: os.waitpid(pid, 0)",
    "closes everything": "os.waitpid(child(lambda: os.closerange(3, 5000)), 0)",
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_buffering_resumes_after_the_children_end(start: Start, end: str) -> None:
    done, counts, reason = run_traced(start, f"numbers(1000)\n{end}\nnumbers(1000)")
    assert done.files["out.dat"] == 2 * LINES
    assert counts["buffered_write_bytes"] > 0.9 * counts["bytes_written"]
    assert reason == ""


ALIVE = {
    "a child": "pid = child(wait)",
    "a child's child": "pid = child(lambda: child(wait)); os.waitpid(pid, 0)",
    "a program that a child became": "os.set_inheritable(out.fileno(), True); pid = child(read)",
    "a program that has it as its output": "child(lambda: (os.dup2(out.fileno(), 1), read()))",
    "a program that a child started": (
        """
start = lambda: subprocess.Popen(['cat'], stdin=end, stdout=out)
os.waitpid(child(start), 0)
"""
    ),
    "a program that a shell of a child started": (
        """
os.dup2(out.fileno(), 8)
os.dup2(end, 9)
os.waitpid(child(lambda: os.system('cat <&9 &')), 0)
"""
    ),
}
#: Children wait for bytes from a pipe, which ends with the parent.
WAIT = """
end, ours = os.pipe()
def wait():
    os.close(ours)
    os.read(end, 1)
def read():
    os.dup2(end, 0)
    os.execlp('cat', 'cat')
"""


@pytest.mark.parametrize("alive", ALIVE.values(), ids=ALIVE)
def test_buffering_pauses_while_a_process_may_have_the_descriptor(start: Start, alive: str) -> None:
    _, counts, reason = run_traced(start, f"{WAIT}\nnumbers(10)\n{alive}\nnumbers(1000)")
    assert counts["buffered_write_bytes"] == 20
    assert reason == "the program forked while it was open"


def test_the_parent_continues_at_an_offset_moved_by_a_child(start: Start) -> None:
    script = (
        "out.write(b'parent '); os.waitpid(child(lambda: out.write(b'child ')), 0)\nfor i in"
        " range(20): out.write(b'again ')\nnumbers(1000)"
    )
    done, counts, _ = run_traced(start, script)
    assert done.files["out.dat"] == b"parent child " + b"again " * 20 + LINES
    assert counts["system_writes"] == 2


def test_a_lock_during_the_pause_ends_buffering(start: Start) -> None:
    script = (
        "import fcntl\nos.waitpid(child(lambda: None), 0)\nfcntl.flock(out,"
        " fcntl.LOCK_EX)\nnumbers(1000)"
    )
    _, counts, reason = run_traced(start, script)
    assert (counts["buffered_write_bytes"], reason) == (0, "the program locks it")


def test_a_child_reads_its_writes_by_another_descriptor(start: Start) -> None:
    script = """
def work():
    again = open('out.dat', 'r+b', 0)
    again.write(b'by the child')
    assert os.pread(out.fileno(), 100, 0) == b'by the child'
out = open('out.dat', 'w+b', 0)
assert os.waitpid(child(work), 0)[1] == 0
"""
    assert run_traced(start, script)[0].files["out.dat"] == b"by the child"


def test_pools_of_processes_do_not_end_buffering(start: Start) -> None:
    script = """
import multiprocessing
if __name__ == '__main__':
    numbers(1000)
    with multiprocessing.get_context('fork').Pool(3) as pool:
        assert pool.map(abs, range(-10, 0)) == list(range(10, 0, -1))
    numbers(1000)
"""
    done, counts, _ = run_traced(start, script)
    assert done.files["out.dat"] == 2 * LINES
    assert counts["buffered_write_bytes"] > 0.9 * counts["bytes_written"]


REOPENED = """
out.close()
end, ours = os.pipe()
log = os.open('out.dat', os.O_WRONLY | os.O_APPEND)
def add():
    os.close(ours)
    os.read(end, 1)
    os.write(log, b'added')
pid = child(add)
os.close(log)
again = open('out.dat', 'r+b', 0)
again.write(b'written')
os.close(ours)
os.waitpid(pid, 0)
"""


def test_a_reopened_file_is_not_buffered_while_a_child_has_it(
    start: Start,
) -> None:
    done, counts, reason = run_traced(start, REOPENED)
    assert done.files["out.dat"] == b"writtenadded"
    assert counts["buffered_write_bytes"] == 0 and "forked" in reason


def test_a_reopened_file_is_buffered_after_that_child_ends(start: Start) -> None:
    done, counts, _ = run_traced(
        start,
        REOPENED + "again.close(); again = open('out.dat', 'r+b', 0); again.write(b'rewrote')",
    )
    assert done.files["out.dat"] == b"rewroteadded"
    assert counts["buffered_write_bytes"] == 7
