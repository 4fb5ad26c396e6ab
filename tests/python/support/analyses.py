"""Analyses made by hand with every kind of content that the reporters show."""

from __future__ import annotations

import math
from dataclasses import replace

from pario.see.analyze.model import (
    Analysis,
    Contention,
    Evidence,
    FileRow,
    FileSystemRow,
    Finding,
    Fix,
    FunctionRow,
    HintRow,
    HintState,
    JobInfo,
    Phase,
    SizeRow,
    Split,
    Timeline,
    Verdict,
)
from pario.see.analyze.mpiio_model import MpiioPhase, MpiioRow

BINS = 300
CHECKPOINT = "/lustre/work/combustion/run17/out/checkpoint_0001.h5"


def small() -> Analysis:
    """A serial program with one finding: the smallest page that is not empty."""
    split = Split(compute=1.0, communication=0.0, waiting=0.0, io=3.0)
    return Analysis(
        job=_job(
            command="./convert data.txt",
            wall=4.0,
            ranks=1,
            hosts=1,
            files=1,
            read=0,
            written=1_024_000_000,
        ),
        verdict=Verdict(
            sentence=(
                "I/O-bound: I/O costs 3.00 s (75 %) of the 4.00 s run; 1.20 s (30 %) could be"
                " saved, mostly by joining small writes into large ones."
            ),
            bound="io",
            grade="worthwhile",
            critical=split,
            slowest=split,
            slowest_rank=-1,
            mean=split,
            method="one process: its I/O time is what its calls took",
        ),
        findings=(_findings(4.0)[0],),
        functions=(
            _function("write", "posix", 2_000_000, 3.0, 3.0, 0, 1, 1_024_000_000, wall=4.0),
        ),
        files=(
            _file(
                "/home/ada/out.dat",
                ranks=1,
                writes=2_000_000,
                written=1_024_000_000,
                write_seconds=3.0,
            ),
        ),
        file_total=1,
        filesystems=(),
        sizes=(SizeRow("posix", (0,) * 10, (0, 2_000_000, 0, 0, 0, 0, 0, 0, 0, 0)),),
        timeline=None,
        phases=(),
        contention=(),
    )


def healthy() -> Analysis:
    """A run without findings."""
    split = Split(compute=11.4, communication=0.4, waiting=0.1, io=0.1)
    sentence = (
        "I/O is 1 % of the 12.0 s run: nothing here is worth changing; computation takes 95 %."
    )
    verdict = replace(
        small().verdict,
        sentence=sentence,
        bound="compute",
        grade="healthy",
        critical=split,
        slowest=split,
        mean=split,
    )
    return replace(small(), job=replace(small().job, wall=12.0), verdict=verdict, findings=())


def empty() -> Analysis:
    """A job without any facts: no wall time, no calls."""
    split = Split(0.0, 0.0, 0.0, 0.0)
    verdict = Verdict(
        "Nothing is known of this job's I/O.",
        "unknown",
        split,
        split,
        -1,
        split,
        "",
        ("I/O (the log has none)",),
    )
    job = replace(small().job, wall=0.0, ranks=0, processes=0, hosts=(), files=0, bytes_written=0)
    return Analysis(
        job, verdict, (), (), (), 0, (), (), None, (), (), messages=("run.pario: the log is empty",)
    )


def rich(ranks: int = 10) -> Analysis:
    """Twelve findings, 300 files, a timeline of up to 64 rows and 300 bins, contention on 16
    targets."""
    wall = 184.2
    critical = Split(compute=61.4, communication=9.1, waiting=22.5, io=91.2)
    return Analysis(
        job=_job(
            f"mpiexec -n {ranks} ./s3d --checkpoint independent --steps 40",
            wall,
            ranks,
            max(1, ranks // 64),
            12_000,
            3 * 10**10,
            4 * 10**11,
        ),
        verdict=Verdict(
            sentence=(
                "I/O-bound: I/O costs 91.2 s (50 %) of the 184 s on the critical path; 82.1 s"
                " (45 %) could be saved, mostly by joining small writes into large ones."
            ),
            bound="io",
            grade="worthwhile",
            critical=critical,
            slowest=Split(compute=58.0, communication=8.0, waiting=12.2, io=106.0),
            slowest_rank=3,
            mean=Split(compute=66.0, communication=8.6, waiting=79.4, io=30.2),
            method=(
                "waiting is the time before the last rank arrived at each collective; the critical"
                " path follows the last arrivals"
            ),
            not_known=("page faults of memory-mapped files",),
        ),
        findings=_findings(wall),
        functions=_functions(ranks),
        files=_files(ranks),
        file_total=12_000,
        filesystems=(
            FileSystemRow("lustre", "/lustre", 11_800, 3 * 10**10, 4 * 10**11, 2900.0, 48_000_000),
            FileSystemRow("nfs", "/home", 150, 2 * 10**7, 4 * 10**6, 12.0, 9_000),
            FileSystemRow("tmpfs", "/tmp", 50, 10**8, 10**8, 0.3, 4_000),
        ),
        sizes=(
            SizeRow(
                "posix",
                (0, 1200, 88, 0, 45, 3000, 0, 0, 2, 0),
                (900, 2_000_000, 64_000, 1200, 0, 88, 0, 12, 0, 0),
            ),
            SizeRow(
                "stdio",
                (30_000, 12, 0, 0, 0, 0, 0, 0, 0, 0),
                (4_000_000, 60, 0, 0, 0, 0, 0, 0, 0, 0),
            ),
            SizeRow("mpiio", (0,) * 10, (0, 0, 0, 0, 0, 4800, 40, 0, 0, 0)),
        ),
        timeline=_timeline(ranks, wall),
        phases=tuple(
            Phase(15.0 + 45 * i, 30.0 + 45 * i, "write", 10**11, ranks, 15.0 * ranks)
            for i in range(4)
        ),
        contention=(_contention(ranks),),
        hints=(
            (CHECKPOINT, "romio_cb_write", "enable", "disable"),
            (CHECKPOINT, "cb_nodes", "16", "1"),
            (CHECKPOINT, "striping_factor", "16", "not known"),
        ),
        messages=(
            (
                "HOST7.4411.18c2.plog: ends in the middle of a block (the process was killed); its"
                " last events are missing"
            ),
            (
                "events of 3 processes were merged after 256 MB: 1,204,331 calls have no row of"
                " their own"
            ),
        ),
        audit=(
            _hint(
                "cb_nods", "16", "", "", "not taken", "unknown hint cb_nods: did you mean cb_nodes?"
            ),
            _hint(
                "striping_factor",
                "16",
                "16",
                "1",
                "not in force",
                "existing file: it keeps 1 stripe",
                files=40,
            ),
            _hint(
                "cb_config_list",
                "*:1",
                "",
                "",
                "without meaning",
                "known, but without a meaning here",
            ),
            _hint("romio_cb_write", "enable", "enable", "enable", "in force", ""),
        ),
        mpiio=tuple(
            _mpiio(f"/lustre/work/combustion/run17/out/checkpoint_{i + 1:04d}.h5", ranks, 40 - i)
            for i in range(40)
        ),
        mpiio_total=40,
    )


def _hint(
    key: str,
    requested: str,
    applied: str,
    effective: str,
    state: HintState,
    reason: str,
    files: int = 1,
) -> HintRow:
    return HintRow(key, requested, applied, effective, reason, state, (CHECKPOINT,), files)


def _mpiio(path: str, ranks: int, seconds: float) -> MpiioRow:
    parts = {"open": 0.01, "calls": 1.0, "wait": 0.3, "copy": 0.1, "messages": 0.05, "file": 0.6}
    return MpiioRow(
        path=path,
        opens=1,
        ranks=ranks,
        nodes=max(1, ranks // 64),
        collective_writes=120 * ranks,
        collective_reads=0,
        independent_writes=3,
        independent_reads=0,
        through_windows=120 * ranks,
        direct=0,
        ran_ahead=0,
        sieved=1,
        written_behind=0,
        writes_behind=0,
        merged_calls=0,
        merged_exchanges=0,
        bytes_written=10**10,
        bytes_read=0,
        system_writes=2400,
        system_write_bytes=10**10,
        average_system_write=10**10 / 2400,
        stripe_sized_writes=2380,
        system_reads=7,
        system_read_bytes=7 << 20,
        read_modify_writes=7,
        gap_bytes=4096,
        messages=0,
        message_bytes=0,
        writers=ranks,
        aggregators=max(1, ranks // 64),
        stripe_count=16,
        stripe_size=1 << 20,
        net=10**10 / seconds,
        raw=10**10 / seconds / 0.6,
        phases=tuple(
            MpiioPhase(name, 0.5 * part * seconds, 0.8 * part * seconds, part * seconds)
            for name, part in parts.items()
        ),
    )


def hostile() -> Analysis:
    """Texts that try to break out of the markup of a page or to control a terminal."""
    paths = (
        "/data/<script>alert(1)</script>.h5",
        "/data/\"quoted\" & 'single'.dat",
        "/data/bytes-\udcff\udcfe.bin",
        "/data/" + "long" * 1000,
        "/data/\u05e9\u05dc\u05d5\u05dd-\u0639\u0631\u0628\u064a.dat",
        "/data/\u202egnp.exe",
        "/data/esc\x1b[31mred\x07\nnewline",
        "/data/[bold]markup[/bold].txt",
        "/data/{{ 7 * 7 }}{% raw %}.txt",
        "/data/</style></title>--><!--.txt",
    )
    rows = tuple(_file(path, ranks=1, writes=10, written=1000, write_seconds=0.1) for path in paths)
    findings = tuple(
        replace(
            _findings(4.0)[0],
            title=f"2,000,000 writes to {path}",
            files=(path,),
            evidence=(Evidence(path, path),),
            fixes=(Fix("command", f"lfs setstripe -c 4 '{path}'"),),
        )
        for path in paths
    )
    contention = replace(_contention(4), path=paths[0], ranks=paths[:4])
    return replace(
        small(),
        job=replace(small().job, command=f"./app {paths[0]}", hosts=("<b>host</b>",)),
        files=rows,
        findings=findings,
        contention=(contention,),
        messages=paths,
        audit=tuple(_hint(path, path, path, path, "not taken", path) for path in paths),
        mpiio=tuple(_mpiio(path, 4, 1.0) for path in paths),
        mpiio_total=len(paths),
    )


def _job(
    command: str, wall: float, ranks: int, hosts: int, files: int, read: int, written: int
) -> JobInfo:
    return JobInfo(
        source="run.pario",
        format="pario",
        command=command,
        start=1_790_000_000.0,
        wall=wall,
        ranks=ranks,
        processes=ranks,
        hosts=tuple(f"node{number:04d}" for number in range(hosts)),
        exit_status=0,
        mpi_library="MPICH 5.0.2" if ranks > 1 else "",
        bytes_read=read,
        bytes_written=written,
        files=files,
    )


def _finding(
    rule: str,
    title: str,
    cause: str,
    seconds: float,
    confidence: str,
    fixes: tuple[Fix, ...],
    ranks: tuple[int, ...] = (),
) -> Finding:
    return Finding(
        rule=rule,
        title=title,
        cause=cause,
        seconds=seconds,
        method=(
            "the time of these calls, less the time that the same bytes need in pieces of 4 MiB at"
            " the rate seen in this run"
        ),
        confidence=confidence,  # type: ignore[arg-type]
        evidence=(
            Evidence(
                "1,999,998 of 2,000,000 writes begin where the last one ended",
                CHECKPOINT,
                ranks,
                {"writes": 2e6},
            ),
            Evidence("median write: 512 B in 1.50 µs; longest 38 ms"),
        ),
        fixes=fixes,
        files=(CHECKPOINT, "/lustre/work/combustion/run17/out/checkpoint_0002.h5"),
        file_count=40,
        ranks=ranks,
    )


_SETTING = Fix("setting", "pario run --fix buffers these writes (stream_size=8M)")
_CODE = Fix(
    "code",
    "write through a buffer of some megabytes: setvbuf(file, buffer, _IOFBF, 4 << 20) with a buffer"
    " of your own",
)
_COLLECTIVE = Fix(
    "code",
    "replace MPI_File_write_at by MPI_File_write_at_all; set the file view once, outside the loop",
)
_STRIPE = Fix("command", "lfs setstripe -c 16 -S 4M /lustre/work/combustion/run17/out")
#: rule, title, cause, part of the wall time, confidence, fixes, ranks
_FINDINGS = (
    (
        "small-writes",
        "2,000,000 writes of 512 B to checkpoint_0001.h5",
        (
            "Each write is a system call, and the file system does the same work for 512 B as for 4"
            " MiB."
        ),
        0.30,
        "high",
        (_SETTING, _CODE),
        (),
    ),
    (
        "missing-collectives",
        "Independent MPI-IO where all ranks write one file",
        (
            "Ranks write interleaved pieces on their own; the file system's locks move between them"
            " at every piece."
        ),
        0.12,
        "high",
        (_COLLECTIVE,),
        (),
    ),
    (
        "single-stripe",
        "All ranks write to one storage target (stripe count 1)",
        "The file lies on one OST: its bandwidth is the limit for all ranks.",
        0.08,
        "medium",
        (_STRIPE,),
        (),
    ),
    (
        "straggler",
        "Rank 3 needs 3.5 times as long as the others",
        "The others wait for it at the end of each checkpoint.",
        0.05,
        "high",
        (Fix("code", "spread rank 3's part over more ranks"),),
        (3,),
    ),
    (
        "fsync-storm",
        "4,000 fsync calls, one after each write",
        "Each fsync waits until the storage has the data.",
        0.03,
        "high",
        (Fix("code", "call fsync once, after the last write"),),
        (),
    ),
    (
        "stat-storm",
        "1,200,000 stat calls in /lustre/work/combustion/run17/in",
        "Each asks the metadata server.",
        0.02,
        "medium",
        (Fix("code", "list the directory once with os.scandir"),),
        (0,),
    ),
    (
        "open-close",
        "12,000 opens and closes of log.txt",
        "The file is opened for every line.",
        0.012,
        "high",
        (Fix("code", "open it once"),),
        (0,),
    ),
    (
        "seek-storm",
        "800,000 seeks to where the file stood already",
        "Each one empties the stream's buffer.",
        0.008,
        "high",
        (Fix("code", "leave out the seeks"),),
        (),
    ),
    (
        "hole-read-modify-write",
        "Data sieving reads 12 GB to write 3 GB",
        "ROMIO reads the holes and writes them back.",
        0.005,
        "medium",
        (Fix("setting", "romio_ds_write=disable"),),
        (),
    ),
    (
        "ascii",
        "4.0 GB of numbers written as text",
        "Formatting costs more than writing.",
        0.003,
        "low",
        (Fix("code", "write binary: HDF5, netCDF"),),
        (),
    ),
    (
        "unaligned",
        "64 % of the writes cross a block border",
        "A block that is written in part is read first.",
        0.002,
        "low",
        (Fix("setting", "align to 1 MiB: H5Pset_alignment"),),
        (),
    ),
    (
        "small-files",
        "12,000 files below 64 kB in one directory",
        "Creating files costs the metadata server more than their data.",
        0.001,
        "medium",
        (Fix("command", "pario pack out/"),),
        (),
    ),
)


def _findings(wall: float) -> tuple[Finding, ...]:
    return tuple(
        _finding(rule, title, cause, part * wall, sure, fixes, ranks)
        for rule, title, cause, part, sure, fixes, ranks in _FINDINGS
    )


def _function(
    name: str,
    category: str,
    calls: int,
    seconds: float,
    slowest: float,
    rank: int,
    ranks: int,
    size: int,
    waiting: float = 0.0,
    wall: float = 184.2,
) -> FunctionRow:
    mean = seconds / ranks
    imbalance = (slowest - mean) / slowest if slowest else 0.0
    return FunctionRow(
        name,
        category,
        calls,
        seconds,
        seconds / (wall * ranks),
        mean,
        slowest,
        rank,
        imbalance,
        waiting,
        size,
    )


def _functions(ranks: int) -> tuple[FunctionRow, ...]:
    rows = [
        _function(
            "MPI_Barrier",
            "collective",
            40 * ranks,
            70.1 * ranks,
            84.0,
            ranks - 1,
            ranks,
            0,
            68.0 * ranks,
        ),
        _function("write", "posix", 2_000_000, 22.0 * ranks, 88.0, 3, ranks, 4 * 10**11),
        _function(
            "MPI_Allreduce",
            "collective",
            4000 * ranks,
            9.0 * ranks,
            14.0,
            1,
            ranks,
            32_000 * ranks,
            6.0 * ranks,
        ),
        _function(
            "MPI_File_write_at", "mpiio", 4840 * ranks, 8.0 * ranks, 9.0, 3, ranks, 4 * 10**11
        ),
        _function("open64", "posix", 12_000, 2.0 * ranks, 4.0, 0, ranks, 0),
        _function("fsync", "posix", 4000, 1.2 * ranks, 3.9, 3, ranks, 0),
        _function("stat", "posix", 1_200_000, 1.0 * ranks, 9.5, 0, ranks, 0),
        _function("fwrite", "stdio", 4_000_000, 0.4 * ranks, 0.8, 2, ranks, 4 * 10**9),
        _function(
            "MPI_Isend", "p2p", 88_000 * ranks, 0.2 * ranks, 0.3, 2, ranks, 88 * 10**6 * ranks
        ),
        _function("MPI_Wait", "wait", 88_000 * ranks, 0.2 * ranks, 0.3, 2, ranks, 0),
        _function("close", "posix", 12_000, 0.02 * ranks, 0.03, 2, ranks, 0),
        _function("lseek64", "posix", 800_000, 0.01 * ranks, 0.02, 2, ranks, 0),
    ]
    return tuple(sorted(rows, key=lambda row: -row.seconds))


def _file(
    path: str,
    ranks: int,
    writes: int,
    written: int,
    write_seconds: float,
    reads: int = 0,
    read: int = 0,
    read_seconds: float = 0.0,
) -> FileRow:
    return FileRow(
        path=path,
        layers=("posix",) if ranks == 1 else ("mpiio", "posix"),
        filesystem="lustre /lustre" if path.startswith("/lustre") else "nfs /home",
        ranks=ranks,
        reads=reads,
        writes=writes,
        opens=ranks,
        metadata=3 * ranks,
        bytes_read=read,
        bytes_written=written,
        read_seconds=read_seconds,
        write_seconds=write_seconds,
        meta_seconds=0.01 * ranks,
        slowest_rank=3 % ranks,
        slowest_seconds=write_seconds / ranks * 1.5,
        fastest_rank=0,
        fastest_seconds=write_seconds / ranks * 0.7,
    )


def _files(ranks: int) -> tuple[FileRow, ...]:
    base = "/lustre/work/combustion/run17"
    checkpoints = [
        _file(
            f"{base}/out/checkpoint_{i + 1:04d}.h5", ranks, 50_000, 10**10, 0.5 * ranks * (40 - i)
        )
        for i in range(40)
    ]
    inputs = [
        _file(
            f"{base}/in/chemistry/table_{i:03d}.nc",
            ranks,
            0,
            0,
            0.0,
            400 * ranks,
            10**6 * (260 - i),
            0.004 * ranks * (259 - i),
        )
        for i in range(259)
    ]
    folded = replace(_file(f"{base}/logs/*", 1, 11_000, 10**8, 0.2), folded=True)
    rows = [*checkpoints, *inputs, folded]
    return tuple(
        sorted(rows, key=lambda row: -(row.read_seconds + row.write_seconds + row.meta_seconds))
    )


def _timeline(ranks: int, wall: float) -> Timeline:
    rows = min(ranks, 64)
    group = -(-ranks // rows)
    labels = tuple(_label(row * group, min((row + 1) * group, ranks) - 1) for row in range(rows))
    write = tuple(
        tuple(_wave(row, column, 0.75, 60) for column in range(BINS)) for row in range(rows)
    )
    read = tuple(
        tuple(max(0.0, 0.8 - column / 18) if row % 3 else 0.1 for column in range(BINS))
        for row in range(rows)
    )
    meta = tuple(
        tuple(0.9 if row == 0 and column % 75 == 20 else 0.02 for column in range(BINS))
        for row in range(rows)
    )
    mpi = tuple(
        tuple(
            max(0.0, 0.15 + 0.1 * math.sin(column * 0.7 + row) - write[row][column])
            for column in range(BINS)
        )
        for row in range(rows)
    )
    written = tuple(sum(row[column] for row in write) * 1e8 for column in range(BINS))
    done = tuple(sum(row[column] for row in read) * 3e7 for column in range(BINS))
    return Timeline(wall / BINS, 0.0, labels, read, write, meta, mpi, done, written)


def _wave(row: int, column: int, high: float, period: int) -> float:
    """Spends a checkpoint's seconds in every period; row 3 takes three times as long."""
    length = 30 if row == 3 else 11
    return high + 0.2 * math.sin(row * 1.7 + column) if 20 <= column % period < 20 + length else 0.0


def _label(first: int, last: int) -> str:
    return f"rank {first}" if first == last else f"ranks {first}-{last}"


def _contention(ranks: int) -> Contention:
    rows = min(ranks, 64)
    group = -(-ranks // rows)
    cells = tuple(
        tuple((10**9 if target == 5 else 10**8) * ((row * 7 + target) % 4) for target in range(16))
        for row in range(rows)
    )
    return Contention(
        path=CHECKPOINT,
        unit="OST",
        targets=tuple(f"OST {target * 3:04d}" for target in range(16)),
        ranks=tuple(_label(row * group, min((row + 1) * group, ranks) - 1) for row in range(rows)),
        bytes=cells,
        ranks_per_target=tuple(
            sum(1 for row in cells if row[target]) * group for target in range(16)
        ),
        shared_units=1200,
        note="OST 0015 takes 10 times the bytes of the others",
    )
