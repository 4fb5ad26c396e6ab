"""Synthetic jobs whose time is lost between layers, in directories, in processes, or by the order
of calls."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pario.see.analyze.waiting import COMMUNICATION
from pario.see.tables.model import EVENT_KINDS, SITE, Dataset, Frame, Job
from pario.see.tables.rows import new_processes, new_records
from tests.python.jobs import add_events, add_function, add_hint, add_record, file_row

MIB = 1 << 20


def mpi_writes(made: Job, calls: int, size: int, seconds: float, **facts: float) -> None:
    """Rank 0's collective writes through MPI-IO; ``facts``: of the POSIX calls below."""
    add_record(
        made,
        0,
        "/scratch/m",
        "mpiio",
        writes=calls,
        collective_writes=calls,
        bytes_written=calls * size,
        write_time=seconds,
    )
    below = {"writes": calls, "nested_writes": calls, "bytes_written": calls * size} | facts
    add_record(made, 0, "/scratch/m", **below)


def tiny_buffer(made: Job, size: int, storage: float = 15.0) -> None:
    rounds = 100 * MIB // size
    below = {"writes": rounds, "nested_writes": rounds}
    mpi_writes(made, 100, MIB, 20.0, nested_write_time=storage, write_time=storage, **below)
    add_hint(made, "/scratch/m", "cb_buffer_size", str(size))


def write_ordered(made: Job, calls: int) -> None:
    mpi_writes(made, calls, 80_000 // calls, 10.0, nested_write_time=6.0, write_time=6.0)
    add_function(
        made, 0, "MPI_File_write_ordered", "mpiio", calls=calls, seconds=10.0, bytes=80_000
    )


def tiny_calls(made: Job, calls: int, collective: bool) -> None:
    own = {"writes": calls, "bytes_written": 80_000, "write_time": 10.0}
    together = {"collective_writes": calls} if collective else {}
    add_record(made, 0, "/scratch/m", "mpiio", **own, **together)


def amplify(made: Job, moved: int) -> None:
    add_record(
        made,
        0,
        "/scratch/m",
        "mpiio",
        reads=40,
        bytes_read=4 * MIB,
        read_time=10.0,
        end_read=400 * MIB,
    )
    below = {"reads": 40, "nested_reads": 40, "bytes_read": moved}
    add_record(made, 0, "/scratch/m", read_time=9.0, nested_read_time=9.0, **below)


def ask_names(made: Job, names: int) -> None:
    for number in range(names):
        file_row(made, f"/scratch/q/{number}")
    rows = new_records(names)
    rows["file"], rows["stats"], rows["stat_time"] = np.arange(names), 1, 0.002
    made.records = rows


def read_backwards(made: Job, forward: int) -> None:
    add_record(
        made,
        0,
        "/scratch/f",
        opens=1,
        reads=10_000,
        forward_reads=forward,
        strided_reads=9_998,
        bytes_read=10_000 * 4096,
        end_read=10_000 * 4096,
        read_time=20.0,
        seeks=10_000,
        seek_time=0.5,
    )


def copy(made: Job, calls: int) -> None:
    size = 40 * MIB
    source = {"reads": calls, "bytes_read": size, "read_time": 5.0, "end_read": size}
    target = {"writes": calls, "bytes_written": size, "write_time": 5.0}
    add_record(made, 0, "/scratch/a", copies=calls, **source)
    add_record(made, 0, "/scratch/b", copies=calls, **target)


def lock(made: Job, seconds: float = 30.0) -> None:
    """Two ranks that wait for each other's lock of a file."""
    add_record(made, [0, 1], "/scratch/log", opens=1, writes=100, locks=100, lock_time=seconds)


def resize(made: Job, count: int) -> None:
    """Sets the size of a file before each write."""
    add_record(
        made,
        0,
        "/scratch/f",
        opens=1,
        truncates=count,
        other_time=10.0,
        writes=100,
        end_written=MIB,
    )


def list_directory(made: Job, lists: int) -> None:
    listing = {"lists": lists, "entries": 3000 * lists, "list_time": 0.05 * lists}
    add_record(made, 0, "/scratch/items", **listing)


def list_directory_and_match(made: Job, lists: int) -> None:
    """Python lists a directory and closes it, which names no file; 5 ms of matching follow."""
    made.programs = ["/usr/bin/python3"]
    list_directory(made, lists)
    for kind, path, begin in (("list", "/scratch/items", 0.0), ("other", "", 0.05)):
        start = np.arange(lists) * 0.0551 + begin
        took = 0.05 if kind == "list" else 1e-4
        add_events(made, 0, path, kind, start=start, duration=took)
    made.events["file"][made.events["kind"] == EVENT_KINDS.index("other")] = -1


def flush_lines(made: Job, lines: int, took: float) -> None:
    """Python flushes each line; 5 us of its own work lie between the calls."""
    made.programs = ["/usr/bin/python3"]
    moved = {"bytes_written": 20 * lines, "write_time": took * lines}
    add_record(made, 0, "/scratch/log", opens=1, writes=lines, **moved)
    start = np.arange(lines) * (took + 5e-6)
    add_events(made, 0, "/scratch/log", "write", start=start, duration=took, length=20)


def copy_blocks(made: Job, blocks: int) -> None:
    """Python reads a block of one file and writes it to another; 2 us lie between all calls."""
    made.programs = ["/usr/bin/python3"]
    ways = (("/scratch/old", "read", "read", 1e-6), ("/scratch/new", "write", "written", 2e-6))
    for number, (path, kind, word, took) in enumerate(ways):
        moved = {f"bytes_{word}": 64 * blocks, f"{kind}_time": took * blocks}
        add_record(made, 0, path, opens=1, **{f"{kind}s": blocks}, **moved)
        start = np.arange(blocks) * 7e-6 + number * 3e-6
        add_events(made, 0, path, kind, start=start, duration=took, length=64)


def redirect_lines(made: Job, lines: int) -> None:
    """A shell opens a log for each line, between calls on its standard output."""
    made.programs = ["/bin/bash"]
    path, took = "/scratch/log", 1e-6
    calls = {"opens": lines, "closes": lines, "open_time": took * lines, "close_time": took * lines}
    add_record(made, 0, path, **calls)
    moved = {"writes": lines, "bytes_written": 20 * lines, "write_time": took * lines}
    add_record(made, 0, path, "stdio", **moved)
    for number, (kind, layer) in enumerate(
        (("open", "posix"), ("other", ""), ("close", "posix"), ("write", "stdio"))
    ):
        start = np.arange(lines) * 12e-6 + number * 3e-6
        name = path if layer else "<stdout>"
        add_events(made, 0, name, kind, start=start, duration=took, layer=layer or "posix")


def append_members(made: Job, members: int) -> None:
    """Python opens a compressed file for each line, and spends most time in the compressor."""
    made.programs = ["/usr/bin/python3"]
    path, took = "/scratch/lines.gz", 5e-6
    calls = {"opens": members, "closes": members}
    seconds = {"open_time": took * members, "close_time": took * members}
    add_record(made, 0, path, **calls, **seconds)
    for number, kind in enumerate(("open", "close")):
        start = np.arange(members) * 90e-6 + number * 70e-6
        add_events(made, 0, path, kind, start=start, duration=took)


def print_matrix(made: Job, buffers: int) -> None:
    """A program turns numbers into text; its buffers of 8 KiB are written every 0.1 ms."""
    made.has.add("sampled")
    took = 5e-6
    moved = {"bytes_written": buffers * 8192, "write_time": took * buffers}
    samples = {"sampled_writes": buffers, "sampled_numbers": buffers}
    add_record(made, 0, "/scratch/t", opens=1, writes=buffers, **moved, **samples)
    start = np.arange(buffers) * (100e-6 + took)
    add_events(made, 0, "/scratch/t", "write", start=start, duration=took, length=8192)


def read_matrix(made: Job, blocks: int) -> None:
    """A program reads text in blocks of 8 KiB and turns it into numbers for 20 us each."""
    made.has.add("sampled")
    took = 5e-6
    moved = {"bytes_read": blocks * 8192, "end_read": blocks * 8192, "read_time": took * blocks}
    samples = {"sampled_reads": blocks, "sampled_read_numbers": blocks}
    sequence = {"reads": blocks, "consecutive_reads": blocks}
    add_record(made, 0, "/scratch/t", opens=1, **sequence, **moved, **samples)
    start = np.arange(blocks) * (20e-6 + took)
    offset = np.arange(blocks) * 8192
    place = {"start": start, "duration": took, "offset": offset, "length": 8192}
    add_events(made, 0, "/scratch/t", "read", **place)


def scan_numbers(made: Job, calls: int) -> None:
    moved = {"bytes_read": 20 * calls, "end_read": 20 * calls, "read_time": 2e-7 * calls}
    scans = {"formatted_calls": calls, "reads": calls, "consecutive_reads": calls}
    add_record(made, 0, "/scratch/t", "stdio", opens=1, buffer_size=4096, **scans, **moved)


def map_records(made: Job, maps: int) -> None:
    mapped = {"opens": 1, "maps": maps, "bytes_mapped": 40 * MIB, "map_time": 10.0}
    add_record(made, 0, "/scratch/table", **mapped)


def submit_records(made: Job, size: int) -> None:
    """Asynchronous writes of ``size`` bytes in order, 32 of them in flight."""
    count = 1_000_000
    requests = {"async_requests": count, "async_writes": count, "async_time": 3.0}
    writes = {"writes": count, "bytes_written": size * count, "end_written": size * count}
    depths = {"queue_depth_sum": 32 * count, "async_latency": 90.0}
    add_record(made, 0, "/scratch/f", opens=1, **requests, **writes, **depths)


def await_requests(made: Job, depth: int) -> None:
    """Asynchronous reads of 4 KiB at random, always ``depth`` of them in flight."""
    count = 10_000
    requests = {"async_requests": count, "async_reads": count, "async_time": 10.0 / depth}
    reads = {"reads": count, "bytes_read": 4096 * count, "end_read": 64 * MIB}
    depths = {"queue_depth_sum": depth * count, "async_latency": 10.0}
    add_record(made, 0, "/scratch/volume", opens=1, **requests, **reads, **depths)


def start_programs(made: Job, count: int, used: float) -> None:
    """The first process starts others one after the other, with ``used`` seconds each."""
    children = new_processes(count)
    start = np.arange(count) * made.wall / count
    children["rank"], children["parent"] = -1, made.processes["pid"][0]
    children["pid"] = 2000 + np.arange(count)
    children["start"], children["cpu_user"] = start, used
    children["end"] = children["seen"] = start + used
    children["end_kind"] = 1
    made.processes = np.concatenate([made.processes, children])
    made.processes["cpu_user"][0] = 1.0


def map_file(made: Job, faults: int) -> None:
    add_record(
        *(made, 0, "/scratch/model"),
        **{"opens": 1, "maps": 1, "bytes_mapped": 10 << 30, "mapped_faults": faults},
    )


def print_text(made: Job, formatted: bool) -> None:
    calls, size = (1_000_000, 18) if formatted else (20, 400_000)
    counts = {
        "writes": calls,
        "bytes_written": calls * size,
        "formatted_calls": calls if formatted else 0,
    }
    add_record(
        made,
        0,
        "/scratch/t",
        "stdio",
        write_time=5.0 if formatted else 0.02,
        buffer_size=4096,
        **counts,
    )


def write_in_turn(made: Job, turns: bool) -> None:
    """Four ranks write 5 s each to files of their own: one after the other, or at the same time; a
    barrier follows each write."""
    for step in range(4 if turns else 1):
        begin, end = 5.0 * step, 5.0 * (step + 1)
        writers = [step] if turns else range(4)
        writes = {"writes": 1, "bytes_written": MIB, "write_time": 5.0}
        for rank in writers:
            path = f"/scratch/part{rank}"
            add_record(made, rank, path, opens=1, **writes)
            add_events(made, rank, path, "write", start=begin, duration=5.0, length=MIB)
        for rank in range(4):
            arrival = end if rank in writers else begin
            meeting = {"start": arrival, "duration": end - arrival, "offset": step, "flags": 8}
            add_events(made, rank, "", "communicate", **meeting)
    made.has |= {"events", "mpi", "sync"}


def read_chunks(made: Job, cache: int, filters: tuple[str, ...] = ("deflate",)) -> None:
    """Forty reads of rows of a dataset whose 1,000 chunks of 16 kB are columns."""
    data = "/scratch/climate.h5:/temperature"
    own = {"reads": 40, "bytes_read": 40 * 8000, "chunks_read": 40_000}
    inner = {"inner_read_time": 4.0, "inner_reads": 40_000, "inner_bytes_read": 320_000}
    add_record(made, 0, data, "hdf5", read_time=20.0, **own, **inner)
    moved = {"reads": 40_000, "bytes_read": 320_000, "end_read": 320_000}
    add_record(made, 0, "/scratch/climate.h5", read_time=4.0, forward_reads=39_000, **moved)
    made.datasets.append(
        Dataset(
            file=file_row(made, data),
            element=8,
            shape=(2000, 1000),
            layout="chunked",
            chunk=(2000, 1),
            filters=filters,
            cache=cache,
            read_box=(1, 1000),
        )
    )


def read_small_chunks(made: Job, chunk: int) -> None:
    """One read of a dataset of 8 MB in chunks of ``chunk`` elements of 8 bytes."""
    data, visits = "/scratch/series.h5:/series", 1_000_000 // chunk
    own = {"reads": 1, "bytes_read": 8_000_000, "chunks_read": visits}
    inner = {"inner_read_time": 4e-6 * visits, "inner_reads": visits}
    seconds = 16e-6 * visits
    add_record(made, 0, data, "hdf5", read_time=seconds + 4e-6 * visits, **own, **inner)
    moved = {"reads": visits, "bytes_read": 8_000_000, "end_read": 8_000_000}
    add_record(made, 0, "/scratch/series.h5", read_time=4e-6 * visits, **moved)
    made.datasets.append(
        Dataset(
            file=file_row(made, data),
            element=8,
            shape=(1_000_000,),
            layout="chunked",
            chunk=(chunk,),
            filters=(),
            cache=MIB,
            read_box=(1_000_000,),
        )
    )


def join_parts(made: Job, again: bool) -> None:
    """Two ranks write parts of 500 MB; with ``again`` rank 0 copies them into one file."""
    size = 500 * MIB
    part = {"bytes_written": size, "writes": 500, "write_time": 2.0}
    back = {"bytes_read": size, "reads": 500, "read_time": 1.0, "end_read": size} if again else {}
    add_record(made, 0, "/scratch/part.0", **part, **back)
    add_record(made, 1, "/scratch/part.1", **part)
    if again:
        add_record(made, 0, "/scratch/part.1", **back)
        add_record(
            made, 0, "/scratch/all", writes=1000, bytes_written=2 * size, write_time=4.0, opens=1
        )


def flush_library(made: Job, count: int) -> None:
    """Flushes of an HDF5 file that write 64 KiB each."""
    inner = {"inner_other_time": 3e-4 * count}
    add_record(
        made, 0, "/scratch/x.h5", "hdf5", flushes=count, flush_time=4e-4 * count, opens=1, **inner
    )
    moved = {"writes": count, "bytes_written": count << 16, "write_time": 3e-4 * count}
    add_record(made, 0, "/scratch/x.h5", opens=1, **moved)


def refill_buffers(made: Job, reads: int) -> None:
    """Records at random in a file of 40 MB: each seek makes a stream read 128 KiB."""
    size = 40 * MIB
    moved = {"bytes_read": reads << 17, "end_read": size, "read_time": 2e-5 * reads}
    add_record(made, 0, "/scratch/f", opens=1, reads=reads, seeks=reads, seek_time=0.2, **moved)


def fork_for_items(made: Job, count: int) -> None:
    """The first process forks others one after the other, which start no program."""
    start_programs(made, count, 0.002)
    made.processes["parent_image"][1:] = 1
    add_function(made, 0, "fork", "posix", thread=0, calls=count, seconds=1.5e-3 * count)


def write_elements(made: Job, calls: int, seconds: float, layer: str = "hdf5") -> None:
    """Writes of a dataset of 80 kB."""
    data = "/scratch/values.h5:/values"
    size = 80_000
    add_record(made, 0, data, layer, writes=calls, bytes_written=size, write_time=seconds)
    made.datasets.append(Dataset(file=file_row(made, data), element=8, shape=(10_000,)))


def write_steps(made: Job, steps: int, took: float = 1e-4) -> None:
    """Steps of 8 kB of a file of ADIOS2 together, ten times ``took`` each."""
    size, each = 8000, took * steps
    add_record(made, 0, "/scratch/s.bp", "adios2", opens=1, others=steps, flushes=steps,
               flush_time=6 * each, other_time=each)  # fmt: skip
    add_record(made, 0, "/scratch/s.bp:/v", "adios2", writes=steps, bytes_written=size,
               write_time=each)  # fmt: skip
    add_record(made, 0, "/scratch/s.bp/md.0", opens=1, writes=steps, bytes_written=60 * steps,
               write_time=2 * each)  # fmt: skip


def end_definitions(made: Job, needless: int, read: int, back: int = 0) -> None:
    """Definitions of a netCDF file with 10 s and `needless` bytes, beside 128 MiB of a variable.
    Of its writes netCDF reads `back` bytes of the file first, in 2 s."""
    asked = 128 * MIB
    times = {"other_time": 10.0, "inner_other_time": 8.0}
    inner = {"inner_bytes_written": needless, "inner_bytes_read": read}
    add_record(made, 0, "/scratch/c.nc", "netcdf", opens=1, others=20, **times, **inner)
    own = {"writes": 4, "bytes_written": asked, "write_time": 1.0}
    below = {"inner_writes": 4, "inner_bytes_written": asked, "inner_write_time": 0.9}
    add_record(made, 0, "/scratch/c.nc:/v", "netcdf", **own, **below)
    moved = {
        "writes": 40,
        "bytes_written": needless + asked,
        "reads": 40,
        "bytes_read": read + back,
    }
    times = {"write_time": 6.0, "read_time": 2.9} if read else {"write_time": 8.9}
    if back:
        times["read_time"] = 2.0
    add_record(made, 0, "/scratch/c.nc", opens=1, **moved, **times)


def import_modules(made: Job, processes: int) -> None:
    """Imports of 200 modules by each process."""
    for number in range(200):
        counts = {"opens": 1, "stats": 4, "reads": 2, "bytes_read": 2000, "end_read": 2000}
        times = {"open_time": 0.02, "stat_time": 0.02, "read_time": 0.01}
        path = f"/scratch/env/lib/python3.12/site-packages/package/m{number}.py"
        add_record(made, range(processes), path, **counts, **times)


def poll_lock(made: Job, attempts: int) -> None:
    """A process tries to lock a file every 5 ms; each attempt fails."""
    add_record(made, 0, "/scratch/log", opens=1, writes=1, locks=attempts, failed=attempts)
    start = np.arange(attempts) * 5e-3
    add_events(made, 0, "/scratch/log", "lock", start=start, duration=1e-6, flags=1)


def parse_table(made: Job, passes: int, name: str = "table.csv", size: int = 32 * MIB) -> None:
    """A file that is opened and parsed in 1 s per pass, 0.1 s of it in reads."""
    path = f"/scratch/{name}"
    add_record(
        made,
        0,
        path,
        opens=passes,
        closes=passes,
        reads=passes,
        bytes_read=size * passes,
        end_read=size,
        read_time=0.1 * passes,
    )
    for kind, start, duration in (("open", 0.0, 1e-6), ("read", 0.1, 0.1), ("close", 1.0, 1e-6)):
        starts = np.arange(passes) * 2.0 + start
        add_events(made, 0, path, kind, start=starts, duration=duration)


def parse_mapped_table(made: Job, passes: int) -> None:
    """A file of 32 MiB that is mapped and parsed in 1 s per pass."""
    path = "/scratch/table.csv"
    mapped = {"maps": passes, "bytes_mapped": 32 * MIB * passes, "size_at_open": 32 * MIB}
    add_record(made, 0, path, opens=passes, closes=passes, **mapped)
    for function, start in (("mmap64", 0.0), ("munmap", 1.0)):
        starts = np.arange(passes) * 2.0 + start
        add_events(made, 0, path, "map", start=starts, duration=1e-6, function=function)


def await_file(made: Job, attempts: int) -> None:
    """A file that is missing at each attempt to open it but the last."""
    counts = {
        "opens": 1,
        "failed_opens": attempts,
        "failed": attempts,
        "open_time": 1e-4 * attempts,
    }
    add_record(made, 0, "/scratch/ready", closes=1, **counts)


def extend_archive(made: Job, members: int) -> None:
    """An archive that each open searches to its end, to add a member of 1 kB."""
    reads, size = members * members // 2, 1000 * members
    calls = {"opens": members, "closes": members, "reads": reads, "seeks": 8 * reads}
    moved = {"bytes_read": 512 * reads, "end_read": size, "end_written": size}
    times = {"open_time": 1e-5 * members, "read_time": 2e-6 * reads, "seek_time": 4e-6 * reads}
    own = {"writes": members, "bytes_written": size, "write_time": 1e-5 * members}
    add_record(made, 0, "/scratch/a.tar", **calls, **moved, **times, **own)


def look_for_names(made: Job, names: int) -> None:
    """Names of a directory that are tried to be opened once each, and are missing; the log has one
    row for them."""
    counts = {"failed_opens": names, "failed": names, "open_time": 1e-4 * names}
    add_record(made, 0, "/scratch/frames/*", **counts)
    made.files["folded"][file_row(made, "/scratch/frames/*")] = 1
    made.processes["files_folded"] = names


def change_mode(made: Job, calls: int) -> None:
    """Calls of chmod on 10 files."""
    for number in range(10):
        add_record(made, 0, f"/scratch/d/{number}", others=calls, other_time=1e-4 * calls)


def make_groups(made: Job, groups: int) -> None:
    """Groups of an HDF5 file with an attribute each."""
    calls, times = {"opens": 1, "others": 2 * groups}, {"other_time": 1e-3 * groups}
    add_record(made, 0, "/scratch/g.h5", "hdf5", **calls, **times)


def pass_bytes(made: Job, calls: int, size: int) -> None:
    """Reads of a pipe."""
    made.processes["cpu_user"] = made.processes["cpu_system"] = 4.0
    made.processes["untraced_reads"], made.processes["untraced_bytes_read"] = calls, calls * size


#: The case of repeated imports: the same, the number of ranks, and the kind of file system.
IMPORTS: tuple[
    Callable[[Job], None], Callable[[Job], None], tuple[float, float], int, str
] = (
    lambda made: import_modules(made, 8), lambda made: import_modules(made, 2), (7, 9), 8, "lustre"
)  # fmt: skip


def receive_bytes(made: Job, calls: int, size: int) -> None:
    """The first process receives messages through a socket."""
    made.processes["cpu_user"][0] = 50.0
    add_function(made, 0, "recv", "peers", thread=0, calls=calls, bytes=calls * size)


def await_answers(made: Job, calls: int) -> None:
    """A process that writes a line to another one and reads its answer, again and again."""
    made.processes["cpu_user"] = made.processes["cpu_system"] = 4.0
    made.processes["untraced_reads"] = made.processes["untraced_writes"] = calls
    for name, seconds in (("untraced_read", 50e-6), ("untraced_write", 2e-6)):
        add_function(made, 0, name, "peers", thread=0, calls=calls, seconds=seconds * calls)


def queue_items(made: Job, calls: int) -> None:
    """A process of Python that puts numbers into a queue."""
    made.processes["cpu_user"], made.processes["cpu_system"] = 50.0, 4.0
    made.processes["untraced_writes"], made.processes["untraced_bytes_written"] = calls, 9 * calls
    add_function(made, 0, "untraced_write", "peers", thread=0, calls=calls, seconds=1e-6 * calls)
    made.stacks = [(Frame(file="/usr/lib/python3.11/multiprocessing/connection.py", line=373),)]
    made.sites = np.zeros(1, SITE)
    made.sites["layer"], made.sites["file"], made.sites["calls"] = COMMUNICATION, -1, calls
    made.sites["name"] = made.function_names.index("untraced_write")


#: Of some rules: a job on which it fires, its control, and the seconds that it may claim.
CASES: dict[str, tuple[Callable[[Job], None], Callable[[Job], None], tuple[float, float]]] = {
    "small-copies": (lambda made: copy(made, 100_000), lambda made: copy(made, 40), (9, 10)),
    "chunk-thrash": (
        lambda made: read_chunks(made, MIB),
        lambda made: read_chunks(made, 32 * MIB),
        (19, 20),
    ),
    "small-chunks": (
        lambda made: read_small_chunks(made, 8),
        lambda made: read_small_chunks(made, 65536),
        (2.4, 2.5),
    ),
    "hdf5-calls": (
        lambda made: write_elements(made, 10_000, 5.0),
        lambda made: write_elements(made, 1, 0.01),
        (4.9, 5),
    ),
    "small-steps": (
        lambda made: write_steps(made, 10_000),
        lambda made: write_steps(made, 10),
        (9.8, 9.9),
    ),
    "fill-values": (
        lambda made: end_definitions(made, 128 * MIB, 0),
        lambda made: end_definitions(made, 1000, 0),
        (9.9, 10.1),
    ),
    "header-moves": (
        lambda made: end_definitions(made, 128 * MIB, 128 * MIB),
        lambda made: end_definitions(made, 1000, 1000),
        (9.9, 10.1),
    ),
    "resize-storm": (lambda made: resize(made, 1000), lambda made: resize(made, 2), (9.9, 10)),
    "variable-calls": (
        lambda made: write_elements(made, 10_000, 5.0, "pnetcdf"),
        lambda made: write_elements(made, 1, 0.01, "pnetcdf"),
        (4.9, 5),
    ),
    "attribute-storm": (
        lambda made: change_mode(made, 10_000),
        lambda made: change_mode(made, 10),
        (9.9, 10),
    ),
    "hdf5-objects": (
        lambda made: make_groups(made, 10_000),
        lambda made: make_groups(made, 100),
        (9.9, 10),
    ),
    "small-messages": (
        lambda made: pass_bytes(made, 10_000_000, 1),
        lambda made: pass_bytes(made, 100_000, 64 << 10),
        (4.9, 5.1),
    ),
}
