"""Synthetic jobs that repeat locks, opens with their reads, views and broadcasts."""

from __future__ import annotations

import numpy as np

from pario.see.tables.model import Job
from tests.python.jobs import add_events, add_function, add_record

MIB = 1 << 20


def lock_records(made: Job, locks: int) -> None:
    """A write of 4 KiB between each two lock calls of 2 us; no other process locks the file."""
    writes = {"writes": 2_000_000, "bytes_written": 2_000_000 * 4096, "write_time": 8.0}
    add_record(made, 0, "/scratch/log", opens=1, locks=locks, lock_time=2e-6 * locks, **writes)


def read_columns(made: Job, pieces: int) -> None:
    """Two ranks that each read every second piece of 256 B, with a call of 1 us for each."""
    moved = {"bytes_read": 256 * pieces, "end_read": 512 * pieces}
    calls = {"opens": 1, "reads": pieces, "read_time": 1e-6 * pieces}
    add_record(made, [0, 1], "/scratch/matrix", "mpiio", **calls, **moved)


def parse_two_files(made: Job, passes: int) -> None:
    """Two files that are open at the same time, and read and parsed in 10 ms, in each pass."""
    for number, path in enumerate(("/scratch/a.dat", "/scratch/b.dat")):
        calls = {"opens": passes, "closes": passes, "reads": passes}
        add_record(made, 0, path, **calls, bytes_read=1000 * passes, end_read=1000)
        for kind, start in (("open", 0.0), ("read", 1e-5), ("close", 1e-2)):
            starts = np.arange(passes) * 0.1 + start + number * 1e-6
            offset = 0 if kind == "read" else -1
            add_events(made, 0, path, kind, start=starts, duration=1e-7, offset=offset)


def parse_log(made: Job, passes: int, name: str = "app.log") -> None:
    """A file of 32 MiB that stays open and is read from its start in each pass of 1 s: four reads
    of 25 ms, after each of which the process computes."""
    path, reads, size = f"/scratch/{name}", 4 * passes, 8 * MIB
    counts = {"opens": 1, "closes": 1, "reads": reads, "consecutive_reads": 3 * passes}
    moved = {"bytes_read": size * reads, "end_read": 4 * size, "read_time": 0.025 * reads}
    add_record(made, 0, path, **counts, **moved)
    number = np.arange(reads)
    when = {"start": 1.0 + 0.25 * number, "duration": 0.025}
    add_events(made, 0, path, "open", start=0.5, duration=1e-6)
    add_events(made, 0, path, "read", **when, offset=size * (number % 4), length=size)
    add_events(made, 0, path, "close", start=1.0 + passes, duration=1e-6)


def parse_settings(made: Job, opens: int, processes: tuple[int, ...] = (0,)) -> None:
    """Python opens a small file again and again, reads it, and parses it in 20 us; 30 us lie
    between a close and the next open."""
    made.programs = ["/usr/bin/python3"]
    path, counts = "/scratch/settings.ini", {"opens": opens, "closes": opens, "reads": opens}
    moved = {"bytes_read": 28 * opens, "end_read": 28}
    times = {"open_time": 1e-8 * opens, "read_time": 1e-8 * opens, "close_time": 1e-8 * opens}
    add_record(made, processes, path, **counts, **moved, **times)
    begin = np.arange(opens) * 50e-6
    for process in processes:
        for kind, start, length in (("open", 0.0, 0), ("read", 1e-7, 28), ("close", 20e-6, 0)):
            when = {"start": begin + start, "duration": 1e-8, "length": length}
            add_events(made, process, path, kind, **when)


def parse_to_append(made: Job, opens: int, parsing: float) -> None:
    """A file of 10 kB that is opened, read and parsed, to write at its end and close it, with as
    much work between the write and the close as before it."""
    path, period = "/scratch/results.zip", 4 * parsing
    counts = {"opens": opens, "closes": opens, "reads": opens, "writes": opens}
    moved = {"bytes_read": 10_000 * opens, "end_read": 10_000, "bytes_written": 100 * opens}
    add_record(made, 0, path, **counts, **moved, open_time=1e-6 * opens)
    begin = np.arange(opens) * period
    for kind, start, length in (
        ("open", 0.0, 0),
        ("read", 1e-6, 10_000),
        ("write", parsing, 100),
        ("close", 2 * parsing, 0),
    ):
        offset = {"read": 0, "write": 10_000}.get(kind, -1)
        when = {"start": begin + start, "duration": 1e-7, "length": length, "offset": offset}
        add_events(made, 0, path, kind, **when)


def copy_again(made: Job, times: int, targets: bool) -> None:
    """A file of 16 MiB that the kernel copies again and again: to files that are removed, or to
    sockets."""
    size, path = 16 * MIB, "/scratch/input"
    counts = {"opens": times, "closes": times, "reads": times, "copies": times}
    moved = {"bytes_read": size * times, "end_read": size, "read_time": 0.02 * times}
    add_record(made, 0, path, **counts, **moved)
    if targets:
        counts = {"opens": 1, "closes": 1, "writes": 1, "copies": 1, "others": 1}
        moved = {"bytes_written": size, "end_written": size}
        times_of = {"write_time": 0.02, "other_time": 0.01}
        names = [f"/scratch/tmp{number}/input" for number in range(times)]
        add_record(made, 0, names, **counts, **moved, **times_of)


def parse_after_close(made: Job, opens: int, path: str, pause: float) -> None:
    """A compiled program opens a file of 100 kB, reads and closes it in 12 us, and parses the bytes
    then, or does other work, until the next open."""
    size, begin = 100_000, np.arange(opens) * (pause + 12e-6)
    counts = {"opens": opens, "closes": opens, "reads": opens}
    times = {"open_time": 1e-6 * opens, "read_time": 9e-6 * opens, "close_time": 1e-6 * opens}
    add_record(made, 0, path, **counts, **times, bytes_read=size * opens, end_read=size)
    for kind, start, duration, place in (
        *(("open", 0.0, 1e-6, -1), ("read", 1e-6, 9e-6, 0), ("close", 11e-6, 1e-6, -1)),
    ):
        when = {"start": begin + start, "duration": duration, "offset": place}
        add_events(made, 0, path, kind, **when, length=size * (kind == "read"))


def parse_headers(made: Job, opens: int, path: str = "/scratch/stack.tif") -> None:
    """Each open reads the header of a large file, which takes 10 ms to parse, and other data, which
    take 20 ms."""
    size = 65536
    counts = {"opens": opens, "closes": opens, "reads": 2 * opens}
    add_record(made, 0, path, **counts, bytes_read=(4096 + size) * opens, end_read=100 * MIB)
    begin = np.arange(opens) * 0.05
    places = {
        "open": (0.0, -1, 0),
        "read": (0.001, 0, 4096),
        "read data": (0.011, 4096 + size * np.arange(opens), size),
        "close": (0.031, -1, 0),
    }
    for name, (start, offset, length) in places.items():
        kind = name.split()[0]
        add_events(
            made, 0, path, kind, start=begin + start, duration=1e-6, offset=offset, length=length
        )


def open_for_parts(made: Job, passes: int, places: tuple[int, ...], parsing: float) -> None:
    """A library opens and closes a file for each part of its header, in each pass, and parses it
    after the close; 20 ms of other work end a pass."""
    path, parts = "/scratch/events.root", len(places)
    counts = {"opens": parts * passes, "closes": parts * passes, "reads": parts * passes}
    add_record(made, 0, path, **counts, bytes_read=4096 * parts * passes, end_read=100 * MIB)
    begin = np.arange(passes) * (parts * (parsing + 3e-6) + 0.02)
    for number, place in enumerate(places):
        at = begin + number * (parsing + 3e-6)
        for kind, start, length in (("open", 0.0, 0), ("read", 1e-6, 4096), ("close", 2e-6, 0)):
            offset = place if length else -1
            when = {"start": at + start, "duration": 1e-6, "offset": offset, "length": length}
            add_events(made, 0, path, kind, **when)


def map_again(made: Job, opens: int, calls: tuple[str, ...]) -> None:
    """Opens and maps a large file again and again; 5 ms pass between two of the four calls."""
    path, counts = "/scratch/model.safetensors", {"opens": opens, "closes": opens, "maps": opens}
    add_record(made, 0, path, **counts, bytes_mapped=100 * MIB * opens, size_at_open=100 * MIB)
    begin = np.arange(opens) * 0.03
    for number, name in enumerate(calls):
        kind = "map" if name in ("mmap", "munmap") else name
        when = {"start": begin + 5e-3 * number, "duration": 1e-6, "function": name}
        add_events(made, 0, path, kind, **when)


def set_views(made: Job, views: int) -> None:
    """A view before each of 8000 tiny collective writes of 1 ms; a view takes 2 ms."""
    own = {"writes": 8000, "collective_writes": 8000, "bytes_written": 80_000, "write_time": 8.0}
    add_record(made, 0, "/scratch/m", "mpiio", others=views, other_time=2e-3 * views, **own)


def broadcast_lines(made: Job, pieces: int) -> None:
    """Rank 0 reads 16 MiB in 0.1 s and broadcasts them in pieces of equal size, in 20 s."""
    add_record(made, 0, "/scratch/text", opens=1, reads=4096, bytes_read=16 * MIB, read_time=0.1)
    calls = {"calls": pieces, "bytes": 16 * MIB, "seconds": 20.0}
    add_function(made, [0, 1], "MPI_Bcast", "collective", **calls)


def scan_characters(made: Job, calls: int) -> None:
    """A scanf for each character."""
    own = {"reads": calls, "formatted_calls": calls, "bytes_read": calls, "read_time": 1e-7 * calls}
    add_record(made, 0, "/scratch/text", "stdio", opens=1, **own)
