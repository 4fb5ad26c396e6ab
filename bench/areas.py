"""The areas of the page of benchmarks: files of results, and the meaning of their columns."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Area:
    """A part of the page: a file of results, and the meaning of its columns."""

    name: str  # of the CSV file
    key: str  # of the section and its plot
    title: str
    case: tuple[str, ...]  # columns that name a case
    value: str  # column: a cost, or a rate if it is "..._per_second"
    ours: str  # way
    peers: tuple[str, ...] = ()  # ways
    limit: str = ""  # way, or column
    caveat: str = ""
    only: dict[str, str] = field(default_factory=dict)  # cells of rows that count
    labels: dict[str, str] = field(default_factory=dict)  # ways as readers know them
    subject: str = "pario"  # measured; other subjects are not compared at a glance

    @property
    def is_rate(self) -> bool:
        """Whether larger values are better."""
        return self.value.endswith("_per_second")


AREAS = (
    Area("overhead", "counters", "Tracing, counters", ("call",),
         "nanoseconds_per_call", "counters", limit="bare", only={"version": "library"},
         caveat="A traced call; the limit is the same call without tracing."),
    Area("overhead", "events", "Tracing, events", ("call",),
         "nanoseconds_per_call", "events", limit="bare", only={"version": "library"},
         caveat="A traced call; the limit is the same call without tracing."),
    Area("fix", "fix", "pario run --fix", ("program",), "seconds", "fixed",
         ("bad",), "repaired",
         "The limit is the same program repaired by hand.", labels={"bad": "as it is"}),
    Area("tune", "tune", "pario tune", ("program", "place", "booked"), "seconds", "tuned",
         ("original",), "best of the sweep",
         "Five replays in all, for programs on which no rule was developed. The limit is the best"
         " of all combinations of settings; booked: busy time of a lab's busiest target, which does"
         " not depend on the load.",
         labels={"original": "as it is"}),
    Area("mpiio", "mpiio", "MPI-IO", ("pattern", "operation"), "seconds", "pario, MPICH 5",
         ("ROMIO, MPICH 5, hints", "ROMIO, MPICH 5", "OMPIO, parameters", "OMPIO"), "limit_seconds",
         "All ranks on one node; ROMIO with its best hints. The limit is one process that moves"
         " the same bytes in large pieces; several processes may exceed it.",
         labels={"ROMIO, MPICH 5, hints": "ROMIO", "OMPIO, parameters": "OMPIO"}),
    Area("calls", "calls", "Collective calls", ("pattern", "operation"), "seconds",
         "pario, MPICH 5",
         ("ROMIO, MPICH 5, hints", "ROMIO, MPICH 5", "ROMIO, MPICH 5, no buffers"),
         "limit_seconds",
         "One contiguous piece for each rank and call (calls), or the pieces of the ranks in turn"
         " (turns), 2 ranks. The limit is one process that moves the same bytes in large pieces.",
         labels={"ROMIO, MPICH 5, hints": "ROMIO, hints", "ROMIO, MPICH 5": "ROMIO",
                 "ROMIO, MPICH 5, no buffers": "ROMIO without buffers"}),
    Area("calls", "openmpi", "Collective calls, Open MPI", ("pattern", "operation"), "seconds",
         "pario, Open MPI 5",
         ("ROMIO, Open MPI 5, hints", "ROMIO, Open MPI 5, no buffers", "OMPIO, parameters",
          "OMPIO"),
         "limit_seconds", "As above, with the ROMIO of Open MPI and with OMPIO.",
         labels={"ROMIO, Open MPI 5, hints": "ROMIO, hints",
                 "ROMIO, Open MPI 5, no buffers": "ROMIO without buffers",
                 "OMPIO, parameters": "OMPIO"}),
    Area("checkpoint", "checkpoint", "Checkpoints", ("operation", "form", "bytes"), "seconds",
         "files=1", ("h5py",), "raw",
         "The limit is one raw file for each rank. Checksums of pario are on."),
    Area("records", "records", "Shuffles", ("input_bytes", "record_bytes"),
         "seconds", "pario", ("terashuf", "shuf"), "two copies",
         "More data than memory. The limit is two copies of the data, which a shuffle in two"
         " passes needs."),
    Area("hosts", "hosts", "MPI-IO between hosts", ("hosts", "ranks", "pattern", "operation"),
         "seconds", "pario, MPICH 5",
         ("ROMIO, MPICH 5, hints", "ROMIO, MPICH 5", "OMPIO, parameters", "OMPIO"),
         limit="limit_seconds",
         caveat="Network name spaces whose links are slow. The limit is the time in which the links"
         " carry the bytes that must go to another host.",
         labels={"ROMIO, MPICH 5, hints": "ROMIO", "OMPIO, parameters": "OMPIO"}),
    Area("several_arrays", "arrays", "Several arrays", ("edge", "ranks"), "seconds", "merged",
         ("separate",), caveat="Four collective writes, with and without a hint that merges small"
         " ones."),
    Area("checkpoint_rivals", "savers", "Checkpoints, other tools",
         ("operation", "form", "bytes", "durable"), "seconds", "pario.checkpoint",
         ("parallel HDF5 (ROMIO)", "ADIOS2 (PyPI: a file for each process)", "zarr",
          "torch.distributed.checkpoint"), "a file for each process",
         "durable: every way flushes its files to the disk. The limit is one raw file for each"
         " process. Checksums of pario are on.",
         labels={"ADIOS2 (PyPI: a file for each process)": "ADIOS2"}),
    Area("streams", "streams", "Two million small writes", ("place",), "seconds",
         "write of 512 B, buffered", ("write of 512 B",), "64 MiB pieces",
         "The limit is large writes of the same bytes.",
         labels={"write of 512 B": "as it is"}),
    Area("flushes", "flushes", "Flushed lines", ("program", "lines"), "seconds", "buffered",
         ("plain",), caveat="Programs that flush every line, with and without buffers.",
         labels={"plain": "as it is"}),
    Area("move", "pack", "Packing small files", ("files", "file_bytes"), "seconds", "pack",
         ("tar -c",), caveat="Beside tar with one thread of zstd."),
    Area("move", "unpack", "Unpacking small files", ("files", "file_bytes"), "seconds", "unpack",
         ("tar -x",), caveat="Beside tar with one thread of zstd."),
    Area("small_files", "epochs", "Training from small files", ("files", "file_bytes"), "seconds",
         "packed, pario.records.Loader",
         ("files, DataLoader, num_workers=2", "files, DataLoader, num_workers=0",
          "files, pario.records.Loader"),
         caveat="An epoch from packed files beside one from the files themselves."),
    Area("small_opens", "opens", "Slow opens", ("part", "size", "workers"), "seconds", "ahead",
         ("plain",), caveat="A DataLoader on a lab whose opens are slow, with and without"
         " `loader_ahead`.", labels={"plain": "as it is"}),
    Area("mapped", "mapped", "Mapped files", ("place", "stripes", "library"), "seconds",
         "map_ahead", ("as it is",), "dd",
         "Files of 64 MiB in no cache, from targets of 50 MiB/s and 0.5 ms a request (lab) or a"
         " CephFS. The limit is dd with one reader, which reading ahead may exceed."),
    Area("small_opens", "imports", "Imports", ("part", "size"), "most_further_requests", "cached",
         ("plain",), caveat="Metadata requests of a further process that imports numpy from a lab,"
         " with and without `cached_trees`.", labels={"plain": "as it is"}),
    Area("readers", "readers", "Readers of logs", ("log", "events"), "seconds", "pario",
         ("pydarshan",), caveat="Synthetic logs, each read in a new process; imports before the"
         " reading do not count, and the second process in which pario reads Darshan logs does."
         " pydarshan makes tables of pandas."),
    Area("object_stores", "stores", "Records in an object store", ("sample_bytes", "samples"),
         "samples_per_second", "pario, shuffle",
         ("obstore, threads", "one GET per sample", "mosaicml-streaming", "s3torchconnector"),
         caveat="The first epoch in random order, from servers on the same machine that answer"
         " 20 ms late; two cores serve and load. Every record has a request of its own."),
    Area("object_stores", "stores-cached", "Records in a store, block cache",
         ("sample_bytes", "samples"), "samples_per_second", "pario, block cache",
         ("obstore, threads", "one GET per sample", "webdataset", "mosaicml-streaming",
          "s3torchconnector"),
         caveat="The same random order, with `PARIO_BLOCK_CACHE`: the directory holds the whole"
         " file at the end. webdataset shuffles in a buffer and keeps nothing."),
    Area("object_stores", "stores-blocks", "Records in a store, by blocks",
         ("sample_bytes", "samples"), "samples_per_second", "pario, blocks", ("webdataset",),
         caveat="Orders that are less random: pario shuffles 10 blocks of 100 records at a time,"
         " webdataset shards and a buffer."),
    Area("loader", "loader", "Loaders of records", ("state", "order", "sample_bytes"),
         "samples_per_second", "pario, direct",
         ("DataLoader, pread", "webdataset", "array_record, DataLoader", "grain, array_record",
          "mosaicml-streaming"), "fio",
         "Two workers for each of the others. The limit is fio past the page cache at depth 8,"
         " which a warm page cache exceeds; webdataset shuffles in a buffer."),
    Area("stripes", "stripes", "Stripe counts", ("place", "access"), "seconds", "advised",
         ("1 stripe",), "best of the sweep",
         "`pario stripe advise` on a lab with slow targets. The limit is the best count of a"
         " sweep."),
    Area("replay", "replay", "Replays", ("program", "scale"), "seconds", "replay",
         limit="the program",
         caveat="Seconds of I/O of a replay; the limit is the program itself: a share near one is a"
         " faithful replay."),
    Area("patterns", "patterns", "Patterns", ("place", "operation", "pattern"), "seconds",
         "pario bench", limit="limit_seconds",
         caveat="The patterns of `pario bench patterns` with the MPI's own MPI-IO: the reason to"
         " change one. The limit is the best pattern of the place and the operation.",
         subject="the pattern"),
    Area("micro", "micro", "Single functions", ("program", "benchmark"), "nanoseconds", "pario",
         caveat="Functions of the tracer, and copies of patterns; they have no peers."),
)  # fmt: skip


_KEPT = "Nothing empties the page cache: files that were just written are read from it."
_WRITTEN = "No way waits for the disk: writes end in the page cache."
_LAB = "The lab keeps nothing in the page cache."
#: The state of the caches by the name of a file of results. A column `cold` has it, too.
CACHES = {
    **dict.fromkeys(("overhead", "fix", "mpiio", "calls", "hosts", "checkpoint", "readers",
                     "checkpoint_rivals", "replay"), _KEPT),
    **dict.fromkeys(("several_arrays", "streams", "flushes"), _WRITTEN),
    "tune": _LAB,
    "stripes": _LAB,
    "patterns": f"{_LAB} Nothing empties that of other places.",
    "records": "The limit of the memory includes the page cache, which the copies bypass.",
    "small_opens": "The kernel keeps names for a second, and bytes that were read.",
    "mapped": "Caches are emptied before each measurement.",
    "object_stores": "Each measurement is a process of its own, which begins without a cache.",
    "loader": "Cold: nothing of the file is in the page cache at the start; warm: all of it.",
    "micro": "Memory alone: no cache of files is used.",
}  # fmt: skip
