"""A job on which each rule fires, and one on which it stays silent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pario.see.tables.model import Job, LoaderUse
from tests.python import layer_jobs as layers
from tests.python import repeated_jobs as repeated
from tests.python.jobs import add_events, add_filesystem, add_hint, add_record, make_job, set_layout

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
COUNTERS = {
    "posix",
    "stdio",
    "mpiio",
    "per_rank",
    "layout",
    "alignment",
    "sampled",
    "hints",
    "meta_split",
}  # the tables of a log without events


def job(ranks: int = 1, wall: float = 100.0, kind: str = "ext4") -> Job:
    made = make_job(ranks, wall, hosts=min(ranks, 2), has=COUNTERS)
    add_filesystem(made, "/scratch", kind, 4096, network=kind != "ext4")
    return made


@dataclass
class Case:
    """A job on which a rule fires, the least and most seconds it may claim, and a control on which
    it must stay silent."""

    bad: Callable[[Job], None]
    control: Callable[[Job], None]
    seconds: tuple[float, float]
    ranks: int = 1
    kind: str = "ext4"


def case(
    make: Callable[..., None],
    bad: object,
    control: object,
    seconds: tuple[float, float],
    **how: Any,
) -> Case:
    """A case of ``make(job, *bad)``; a single argument needs no tuple."""

    def call(values: object) -> Callable[[Job], None]:
        given = values if isinstance(values, tuple) else (values,)
        return lambda job: make(job, *given)

    return Case(call(bad), call(control), seconds, **how)


def small(word: str) -> Case:
    def make(made: Job, calls: int, size: int, seconds: float) -> None:
        counts = {
            f"{word}s": calls,
            f"{word}_time": seconds,
            {"write": "bytes_written", "read": "bytes_read"}[word]: calls * size,
        }
        if word == "read":
            counts |= {"end_read": calls * size, "forward_reads": calls - 1}
        add_record(made, 0, "/scratch/f", opens=1, **counts)

    return case(make, (1_000_000, 512, 20.0), (1000, 512 * KIB, 0.9), (19, 20))


def read_scattered(made: Job, calls: int) -> None:
    """Records of 512 B at random places of a file of 100 MB."""
    counts = {"reads": calls, "bytes_read": calls << 9, "read_time": 2e-5 * calls}
    add_record(
        made, 0, "/scratch/f", opens=1, end_read=100 * MIB, forward_reads=calls // 2, **counts
    )


def sync(made: Job, syncs: int, seconds: float) -> None:
    add_record(
        made,
        0,
        "/scratch/f",
        writes=1000,
        bytes_written=16 * MIB,
        write_time=0.1,
        syncs=syncs,
        sync_time=seconds,
    )


def sync_in_turn(made: Job, processes: int) -> None:
    """Processes that run one after the other, each with two syncs of one file."""
    layers.start_programs(made, processes, 0.02)
    started = range(1, processes + 1)
    each = {"writes": 4, "bytes_written": 16384, "write_time": 1e-4}
    add_record(made, started, "/scratch/f", **each, syncs=2, sync_time=0.02)


def flush(made: Job, flushes: int, seconds: float) -> None:
    counts = {"writes": 5000, "bytes_written": 500_000, "write_time": 0.01, "buffer_size": 4096}
    add_record(made, 0, "/scratch/log", "stdio", flushes=flushes, flush_time=seconds, **counts)


def open_and_close(made: Job, opens: int) -> None:
    times = {"open_time": opens * 1e-3, "close_time": opens * 1e-3}
    add_record(
        made,
        0,
        "/scratch/log",
        opens=opens,
        closes=opens,
        writes=100,
        bytes_written=100_000,
        write_time=0.01,
        **times,
    )


def small_files(made: Job, files: int) -> None:
    for number in range(files):
        seconds = 30.0 / files
        add_record(
            made,
            0,
            f"/scratch/d/{number}",
            opens=1,
            open_time=seconds,
            writes=1,
            bytes_written=2000,
            write_time=1e-5,
            end_written=2000,
        )


def small_library_files(made: Job, files: int) -> None:
    """Small files that netCDF opens, in 20 s beyond its calls."""
    small_files(made, files)
    for number in range(files):
        add_record(made, 0, f"/scratch/d/{number}", "netcdf", opens=1, open_time=20.0 / files)


def stats(made: Job, calls: int) -> None:
    add_record(made, 0, "/scratch/f", stats=calls, stat_time=calls * 1e-4)


def queue_opens(made: Job, last: float) -> None:
    add_record(
        made,
        range(16),
        "/scratch/f",
        opens=1,
        open_time=np.linspace(0.5, last, 16),
        writes=1,
        bytes_written=1000,
        write_time=0.01,
    )


def all_read(made: Job, readers: int) -> None:
    size = 16 * MIB
    add_record(
        made,
        range(readers),
        "/scratch/table",
        opens=1,
        reads=16,
        bytes_read=size,
        end_read=size,
        read_time=8.0 * readers / 8,
    )


def one_rank(made: Job, writers: int) -> None:
    size = 800 * MIB // writers
    add_record(
        made,
        range(writers),
        "/scratch/out",
        opens=1,
        writes=size // MIB,
        bytes_written=size,
        write_time=16.0 / writers,
    )


def straggler(made: Job, slowest: float) -> None:
    times = np.full(8, 5.0)
    times[3] = slowest
    for rank in range(8):
        add_record(
            made,
            rank,
            f"/scratch/out.{rank}",
            opens=1,
            writes=100,
            bytes_written=100 * MIB,
            write_time=times[rank],
        )


def reread(made: Job, times: int) -> None:
    add_record(
        made,
        0,
        "/scratch/t",
        opens=1,
        reads=32 * times,
        bytes_read=32 * MIB * times,
        end_read=32 * MIB,
        read_time=0.5 * times,
    )


def seeks(made: Job, seeks: int, reads: int) -> None:
    times = {"seek_time": seeks * 1e-6, "read_time": reads * 5e-6 + 0.02}
    add_record(
        made,
        0,
        "/scratch/r",
        opens=1,
        seeks=seeks,
        reads=reads,
        bytes_read=16 * MIB,
        end_read=16 * MIB,
        **times,
    )


def empty(made: Job, empty: int) -> None:
    add_record(
        made,
        0,
        "/scratch/fifo.dat",
        opens=1,
        reads=empty + 100,
        zero_reads=empty,
        bytes_read=100 * KIB,
        read_time=(empty + 100) * 1e-5,
    )


def write_stream(made: Job, size: int, mode: int, seconds: float) -> None:
    counts = {
        "writes": 500_000,
        "bytes_written": 50_000_000,
        "buffer_size": size,
        "buffer_mode": mode,
    }
    add_record(made, 0, "/scratch/s", "stdio", opens=1, write_time=seconds, **counts)


def values(made: Job, calls: int) -> None:
    add_record(
        made,
        0,
        "/scratch/s",
        "stdio",
        opens=1,
        writes=calls,
        bytes_written=80_000_000,
        write_time=3.0 if calls > 1000 else 0.1,
        buffer_size=4096,
    )


def write_sizes(made: Job, sizes: list[int]) -> None:
    """Writes to a stream, of each size in turn."""
    count, each = 40_000, 1e-4
    length = np.resize(sizes, count)
    moved = {"writes": count, "bytes_written": int(length.sum()), "write_time": each * count}
    add_record(made, 0, "/scratch/s", "stdio", opens=1, buffer_size=4096, **moved)
    start = np.arange(count) * 2e-3
    place = {"start": start, "duration": each, "length": length}
    add_events(made, 0, "/scratch/s", "write", layer="stdio", **place)


def holes(made: Job, sieving: bool) -> None:
    add_record(
        made,
        range(2),
        "/scratch/h",
        "mpiio",
        opens=1,
        writes=20,
        bytes_written=5 * MIB,
        write_time=10.0,
    )
    moved = (
        {
            "reads": 160,
            "nested_reads": 160,
            "bytes_read": 640 * MIB,
            "nested_read_time": 4.0,
            "read_time": 4.0,
        }
        if sieving
        else {}
    )
    written = 640 * MIB if sieving else 5 * MIB
    add_record(
        made,
        range(2),
        "/scratch/h",
        writes=160,
        nested_writes=160,
        bytes_written=written,
        write_time=5.0,
        nested_write_time=5.0,
        **moved,
    )


def independent(made: Job, calls: int, size: int) -> None:
    add_record(
        made,
        range(4),
        "/scratch/s",
        "mpiio",
        opens=1,
        writes=calls,
        bytes_written=calls * size,
        write_time=12.0 if calls > 100 else 0.3,
    )


def exchange(made: Job, storage: float) -> None:
    counts = {"writes": 10, "collective_writes": 10, "bytes_written": 100 * MIB}
    add_record(made, range(4), "/scratch/c", "mpiio", opens=1, write_time=20.0, **counts)
    add_record(
        made,
        0,
        "/scratch/c",
        writes=100,
        nested_writes=100,
        bytes_written=400 * MIB,
        write_time=storage,
        nested_write_time=storage,
    )


def late(made: Job, last: list[int]) -> None:
    """Adds ten collective calls; the ranks in ``last`` take turns in arriving four seconds late."""
    made.has.add("events")
    for call in range(10):
        starts = np.full(4, call * 10.0)
        starts[last[call % len(last)]] += 4.0
        spent = call * 10.0 + 4.5 - starts
        add_events(
            made,
            range(4),
            "/scratch/c",
            "write",
            layer="mpiio",
            start=starts,
            duration=spent,
            length=100 * MIB,
            flags=8,
        )
    spent = [
        float(made.events["duration"][made.events["process"] == rank].sum()) for rank in range(4)
    ]
    add_record(
        made,
        range(4),
        "/scratch/c",
        "mpiio",
        opens=1,
        writes=10,
        collective_writes=10,
        bytes_written=GIB,
        write_time=spent,
    )


def hint(made: Job, effective: int) -> None:
    add_record(
        made,
        range(4),
        "/scratch/c",
        "mpiio",
        opens=1,
        writes=10,
        collective_writes=10,
        bytes_written=GIB,
        write_time=20.0,
    )
    add_record(
        made,
        range(4),
        "/scratch/c",
        writes=10,
        nested_writes=10,
        bytes_written=GIB,
        write_time=19.0,
        nested_write_time=19.0,
    )
    add_hint(made, "/scratch/c", "striping_factor", "8", "requested")
    add_hint(made, "/scratch/c", "striping_factor", str(effective), "effective")


def targets(made: Job, slow: float, directory: str = "/scratch", reading: bool = False) -> None:
    for rank in range(32):
        seconds = slow if rank % 8 == 5 else 2.0
        add_record(
            made,
            rank,
            f"{directory}/o.{rank}",
            opens=1,
            **(
                {"reads": 64, "bytes_read": 256 * MIB, "read_time": seconds}
                if reading
                else {"writes": 64, "bytes_written": 256 * MIB, "write_time": seconds}
            ),
        )
        set_layout(made, f"{directory}/o.{rank}", MIB, [rank % 8])


def stripe(made: Job, stripes: int) -> None:
    add_record(
        made,
        range(8),
        "/scratch/big",
        opens=1,
        writes=256,
        bytes_written=256 * MIB,
        write_time=20.0,
        end_written=2048 * MIB,
    )
    set_layout(made, "/scratch/big", MIB, range(stripes))


def misalign(made: Job, off: int) -> None:
    counts = {"writes": 100, "unaligned_writes": off, "bytes_written": 100 * MIB, "block_size": MIB}
    add_record(made, range(4), "/scratch/shared", opens=1, write_time=20.0, **counts)
    set_layout(made, "/scratch/shared", MIB, range(4))


def bursts(made: Job, length: float) -> None:
    made.has.add("events")
    starts = np.arange(5) * 20.0
    add_record(
        made,
        0,
        "/scratch/out",
        opens=1,
        writes=5,
        bytes_written=5 * 200 * MIB,
        write_time=5 * length,
    )
    add_events(
        made,
        0,
        "/scratch/out",
        "write",
        start=starts,
        duration=length,
        length=200 * MIB,
        offset=np.arange(5) * 200 * MIB,
    )


def loading(made: Job, workers: int) -> None:
    add_record(
        made,
        0,
        "/scratch/images",
        opens=1,
        reads=1000,
        bytes_read=200 * MIB,
        end_read=200 * MIB,
        read_time=10.0,
    )
    times = {"first": 1.0, "waited": 40.0, "worked": 20.0, "longest": 0.1}
    made.loaders = [
        LoaderUse(0, "DataLoader", "Images", workers, 32, processors=8, batches=1000, **times)
    ]


CASES = {
    "repeated-imports": Case(*layers.IMPORTS),
    "loader-without-workers": case(loading, 0, 4, (40, 40)),
    "small-writes": small("write"),
    "small-reads": small("read"),
    "sync-storm": case(sync, (1000, 30.0), (1, 0.5), (29, 30)),
    "flush-storm": case(flush, (5000, 20.0), (1, 0.01), (19, 20)),
    "open-close-loop": case(open_and_close, 5000, 1, (9.9, 10.02)),
    "many-small-files": case(small_files, 1000, 1, (29, 30.1)),
    "stat-storm": case(stats, 100_000, 20, (9.9, 10)),
    "metadata-queue": case(queue_opens, 20.0, 0.6, (19, 20), ranks=16),
    "all-ranks-read-one-file": case(all_read, 8, 1, (6.9, 8), ranks=8),
    "one-rank-for-all": case(one_rank, 1, 8, (13, 15), ranks=8),
    "straggler": case(straggler, 40.0, 6.0, (34, 36), ranks=8),
    "re-read": case(reread, 20, 1, (9, 10)),
    "seek-storm": case(seeks, (3_000_000, 1_000_000), (1, 4), (7.5, 8.1)),
    "empty-reads": case(empty, 1_000_000, 1, (9.9, 10.1)),
    "mmap-network": case(layers.map_file, 40_000, 10, (15, 25), kind="lustre"),
    "lock-storm": case(repeated.lock_records, 4_000_000, 2, (7.9, 8.1)),
    "small-broadcasts": case(repeated.broadcast_lines, 300_000, 10, (19, 20), ranks=2),
    "lock-waiting": Case(layers.lock, lambda j: layers.lock(j, 0.01), (29, 31), ranks=2),
    "text-output": case(layers.print_text, True, False, (4.5, 5)),
    "stdio-buffer": case(write_stream, (64, 0, 10.0), (MIB, 0, 0.06), (9, 10)),
    "stdio-per-value": case(values, 10_000_000, 10, (2.5, 3)),
    "hole-read-modify-write": case(holes, True, False, (8, 10), ranks=2),
    "missing-collectives": case(independent, (10_000, 1000), (10, MIB), (11, 12), ranks=4),
    "collective-exchange": case(exchange, 5.0, 19.0, (14, 15), ranks=4),
    "collective-waiting": case(late, [3], [0, 1, 2, 3], (29, 31), ranks=4),
    "hints-not-effective": case(hint, 2, 8, (14, 16), ranks=4),
    "slow-target": case(targets, 50.0, 2.2, (47, 49), ranks=32, kind="lustre"),
    "one-stripe": case(stripe, 1, 8, (17, 18), ranks=8, kind="lustre"),
    "unaligned-shared-writes": case(misalign, 100, 0, (5, 15), ranks=4, kind="lustre"),
    "tiny-collective-buffer": case(layers.tiny_buffer, 4096, 16 * MIB, (19, 20)),
    "shared-file-pointer": case(layers.write_ordered, 8000, 10, (9, 10)),
    "tiny-collective-calls": case(layers.tiny_calls, (8000, True), (10, True), (9, 10)),
    "tiny-independent-calls": case(layers.tiny_calls, (8000, False), (10, False), (9, 10)),
    "amplification": case(layers.amplify, 400 * MIB, 4 * MIB, (8.8, 9)),
    "directory-storm": case(layers.ask_names, 5000, 100, (9, 10)),
    "backward-reads": case(layers.read_backwards, 0, 5000, (19, 20.5)),
    "directory-listing": case(layers.list_directory, 200, 2, (9, 10)),
    "mapping-storm": case(layers.map_records, 100_000, 10, (9, 10)),
    "queue-depth": case(layers.await_requests, 1, 32, (7, 8)),
    "text-input": case(layers.scan_numbers, 50_000_000, 5000, (9, 10)),
    "serialized-ranks": Case(
        lambda j: layers.write_in_turn(j, turns=True),
        lambda j: layers.write_in_turn(j, turns=False),
        (14, 16),
        ranks=4,
    ),
    "process-storm": case(layers.start_programs, (2000, 0.002), (10, 2.0), (5.1, 5.3)),
    "mpi-library-time": Case(
        lambda j: layers.mpi_writes(j, 100, MIB, 20.0, nested_write_time=2.0, write_time=2.0),
        lambda j: layers.mpi_writes(j, 100, MIB, 20.0, nested_write_time=18.0, write_time=18.0),
        (17, 18),
    ),
    **{name: Case(*parts) for name, parts in layers.CASES.items()},
    "overlap": case(bursts, 8.0, 0.2, (25, 40)),
}

#: Further jobs: the name of the rule, and the special thing about the job.
VARIANTS = {
    "many-small-files (netCDF)": case(small_library_files, 1000, 1, (49, 50.1)),
    "sync-storm (processes in turn)": case(sync_in_turn, 500, 9, (9.9, 10)),
    # rounds whose time is in the library: the buffer is their cause
    "tiny-collective-buffer (messages)": Case(
        lambda j: layers.tiny_buffer(j, 4096, storage=2.0),
        lambda j: layers.tiny_buffer(j, 16 * MIB, storage=18.0),
        (19, 20),
    ),
    "directory-storm (missing names)": case(layers.look_for_names, 100_000, 100, (9.9, 10.0)),
    "directory-listing (closedir)": case(layers.list_directory_and_match, 200, 2, (10, 11)),
    "small-writes (Python)": case(layers.flush_lines, (1_000_000, 2e-6), (100, 2e-6), (2.9, 3)),
    "small-writes (io_uring)": case(layers.submit_records, 24, 4096, (2.9, 3)),
    "small-writes (copy)": case(layers.copy_blocks, 1_000_000, 100, (2.9, 3)),
    "fill-values (read back)": Case(
        lambda j: layers.end_definitions(j, 128 * MIB, 0, back=128 * MIB),
        lambda j: layers.end_definitions(j, 1000, 0, back=1000),
        (11.9, 12.1),
    ),
    "open-close-loop (shell)": case(layers.redirect_lines, 100_000, 5, (0.9, 1.1)),
    "open-close-loop (gzip)": case(layers.append_members, 30_000, 5, (2.6, 2.8)),
    "text-output (C++)": case(layers.print_matrix, 30_000, 30, (2.8, 3.2)),
    "open-close-loop (missing file)": case(layers.await_file, 100_000, 5, (9.9, 10)),
    "open-close-loop (archive)": case(layers.extend_archive, 2000, 2, (11.9, 12.1)),
    "lock-waiting (polled)": case(layers.poll_lock, 10_000, 10, (49, 50)),
    "re-read (parsed)": case(layers.parse_table, 12, 1, (10.9, 11.1)),
    "re-read (decoded)": case(
        layers.parse_table, (12, "map.png", 8 * MIB), (1, "map.png", 8 * MIB), (10.9, 11.1)
    ),
    "re-read (parsed in passes)": case(repeated.parse_log, 12, 1, (10.9, 11.1)),
    "re-read (mapped)": case(layers.parse_mapped_table, 12, 1, (10.9, 11.1)),
    "stdio-per-value (events)": case(write_sizes, [16], [21, 22, 23, 24], (3.9, 4)),
    "text-input (C++)": case(layers.read_matrix, 300_000, 100, (5.9, 6.1)),
    "small-messages (sockets)": case(
        layers.receive_bytes, (10_000_000, 1), (100_000, 64 * KIB), (4.9, 5.1)
    ),
    "small-messages (answers)": case(layers.await_answers, 100_000, 1000, (2.0, 2.2)),
    "small-messages (multiprocessing)": case(layers.queue_items, 1_000_000, 10_000, (4.9, 5.1)),
    "one-rank-for-all (parts)": case(layers.join_parts, True, False, (5.9, 6.1), ranks=2),
    "flush-storm (HDF5)": case(layers.flush_library, 20_000, 10, (7.9, 8.1)),
    "small-reads (out of order)": case(read_scattered, 320_000, 400, (3.9, 4.1)),
    "seek-storm (buffers)": case(layers.refill_buffers, 400_000, 1, (8.1, 8.2)),
    "tiny-independent-calls (side by side)": case(
        repeated.read_columns, 10_000_000, 100, (5.6, 5.9), ranks=2
    ),
    "tiny-collective-calls (views)": case(repeated.set_views, 8000, 1, (23.9, 24.1)),
    "open-close-loop (two files)": case(repeated.parse_two_files, 200, 1, (1.9, 2.1)),
    "open-close-loop (parsed)": case(repeated.parse_settings, 100_000, 1, (3.1, 3.3)),
    "open-close-loop (headers)": case(repeated.parse_headers, 500, 1, (4.9, 5.1)),
    "resize-storm (few)": case(layers.resize, 50, 10, (9.7, 9.9)),
    "stdio-per-value (scanf)": case(repeated.scan_characters, 50_000_000, 100, (4.6, 5)),
    "process-storm (forks)": case(layers.fork_for_items, 2000, 10, (6.9, 7.1)),
}
