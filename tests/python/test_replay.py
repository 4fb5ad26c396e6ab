"""``pario replay`` repeats the calls and bytes of a run in the same order, in files created like
those of the run."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pario._native import ReplayPlayer
from pario.prove.replay import ReplayError, Script, collective, fidelity, perform, script_of
from pario.prove.replay.order import find_barriers, waits
from pario.prove.replay.perform import Manner, prepare_scratch
from pario.prove.replay.player import close_files, largest_of
from pario.prove.replay.prepared import find_existing_files
from pario.prove.replay.script import END, OPERATION, WAIT, below
from pario.prove.replay.slots import Calls, assign
from pario.prove.replay.verbs import numbers, verb_of
from pario.see.analyze.waiting import COMMUNICATION
from pario.see.tables import read
from pario.see.tables.model import EVENT, IN_VIEW, Job
from pario.see.tables.rows import new_processes
from pario.settings import load
from tests.python.darshanlog import DarshanLog, dxt_record, posix_record, segments
from tests.python.jobs import add_events, add_record, make_job
from tests.support.commands import run_command

MIB = 1 << 20
PROGRAM = """\
import ctypes, os
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
out = os.open("out.dat", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
for number in range(300):
    os.write(out, b"x" * (number + 1))
os.pwrite(out, b"y" * 50, 100)
os.fsync(out)
os.ftruncate(out, 1000)
os.close(out)
found = os.open("found.dat", os.O_RDONLY)
again = os.open("found.dat", os.O_RDONLY)
for _ in range(10):
    os.read(found, 7)
    os.read(again, 100)
os.lseek(found, 5000, os.SEEK_SET)
os.read(found, 4000)
os.close(found)
os.close(again)
for name in ("missing", "found.dat"):
    try:
        os.stat(name)
    except FileNotFoundError:
        pass
stream = ctypes.c_void_p(libc.fopen(b"text.txt", b"w"))
for number in range(100):
    libc.fprintf(stream, b"%d line\\n", number)
libc.fputc(65, stream)
libc.fflush(stream)
libc.fclose(stream)
os.unlink("text.txt")
stream = ctypes.c_void_p(libc.fopen(b"short.txt", b"r"))
while libc.fgetc(stream) >= 0:
    pass
libc.fclose(stream)
"""


def record_run(place: Path, program: str, *options: str) -> Path:
    """Runs a Python program in ``place`` and returns its log."""
    words = [
        sys.executable,
        "-m",
        "pario",
        "run",
        "--no-report",
        "-o",
        "log",
        *options,
        "--",
        sys.executable,
        "-c",
        program,
    ]
    run_command(words, cwd=place, status=0)
    return place / "log"


@pytest.fixture
def job(tmp_path: Path) -> Job:
    (tmp_path / "found.dat").write_bytes(b"f" * 10_000)
    (tmp_path / "short.txt").write_text("short\n")
    return read([record_run(tmp_path, PROGRAM)])


def counts(found: Any) -> dict[tuple[str, str], tuple[int, int]]:
    return {(row.layer, row.name): (row.run, row.replay) for row in found.rows}


@pytest.mark.system
def test_calls_and_bytes_are_the_same(job: Job, tmp_path: Path) -> None:
    script = script_of(job)
    found = fidelity(job, script, perform(script, tmp_path))
    both = counts(found)
    assert {key for key, (run, replay) in both.items() if run != replay} == set()
    assert both["posix", "writes"][0] >= 301
    assert both["posix", "bytes_written"] == (300 * 301 // 2 + 50,) * 2
    assert both["stdio", "reads"][0] >= len("short\n") + 1
    assert both["stdio", "bytes_written"] == (10 * 7 + 90 * 8 + 1,) * 2


@pytest.mark.system
def test_a_replay_removes_its_files(job: Job, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    perform(script_of(job), tmp_path)
    assert sorted(tmp_path.iterdir()) == before


def test_files_that_the_run_found_are_made_with_their_sizes(job: Job) -> None:
    script = script_of(job)
    sizes = {Path(script.paths[made.path]).name: made.size for made in script.files}
    assert sizes["found.dat"] == 10_000
    assert not {"out.dat", "missing", "text.txt"} & sizes.keys()


def test_a_file_that_ranks_create_together_is_not_made(tmp_path: Path) -> None:
    """The first rank to call MPI_File_open asks for the size after the other one's first write."""
    made, path = make_job(2), "/scratch/new"
    add_record(made, 0, path, "mpiio", opens=1, writes=1, size_at_open=3072, first_open=0.0)
    add_record(made, 1, path, "mpiio", opens=1, writes=1, size_at_open=0, first_open=0.1)
    add_events(made, [0, 1], path, "open", layer="mpiio", start=[0.0, 0.1], offset=1 | 4)
    assert find_existing_files(made, np.arange(2), {0: 0}) == ([], [])


def test_of_large_files_only_the_touched_blocks_are_made(tmp_path: Path) -> None:
    made, size, path = make_job(1), 1 << 30, "/scratch/large"
    add_record(made, 0, path, reads=3, size_at_open=size, first_read=0.0)
    offset = [512 * MIB + 5, 10, size - 4096]
    add_events(made, 0, path, "read", start=[0.0, 1.0, 2.0], offset=offset, length=4096)
    (found,), _ = find_existing_files(made, np.arange(3), {0: 0})
    whole = 8 * MIB
    assert found.pieces == ((0, 2 * whole), (64 * whole, 66 * whole), (size - whole, size))
    with prepare_scratch(Script([], [path], [found], 0), tmp_path) as root:
        status = (root / "scratch/large").stat()
        assert (status.st_size, status.st_blocks * 512) == (size, found.stored)


@pytest.mark.parametrize(
    "fields",
    [
        {"offset": -1},
        {"offset": 0, "count": 2},
        {"kind": "map"},
        {"flags": IN_VIEW},
        {"layer": "mpiio"},
    ],
)
def test_a_large_file_is_made_whole_if_the_touched_ranges_are_not_known(
    fields: dict[str, Any],
) -> None:
    made, size = make_job(1), 1 << 30
    add_record(made, 0, "/scratch/large", reads=1, size_at_open=size, first_read=0.0)
    add_events(made, 0, "/scratch/large", **{"kind": "read", "offset": 0, "length": 1} | fields)
    (found,), _ = find_existing_files(made, np.arange(1), {0: 0})
    assert found.pieces is None and found.stored == size


@pytest.mark.system
def test_settings_for_the_paths_of_the_run_hold_in_a_replay(job: Job, tmp_path: Path) -> None:
    settings = tmp_path / "pario.toml"
    settings.write_text(f'[[file]]\nmatch = "{tmp_path}/out.dat"\nstreams.size = "1M"\n')
    played = perform(script_of(job), tmp_path, Manner(settings=load(settings))).job
    (row,) = [
        row
        for row in played.records
        if played.path(row["file"]).endswith("/out.dat") and row["writes"]
    ]
    assert row["writes"] == 301 and 0 < row["system_writes"] < 10


@pytest.mark.system
def test_pauses_are_those_of_the_program(tmp_path: Path) -> None:
    program = (
        'import os, time\nout = os.open("a", os.O_CREAT | os.O_WRONLY)\nos.write(out,'
        ' b"1")\ntime.sleep(0.4)\nos.write(out, b"2")\n'
    )
    script = script_of(read([record_run(tmp_path, program)]))
    writes = script.seats[0][script.seats[0]["verb"] == numbers()["write"]]
    assert writes["pause"][-1] >= 0.39e9
    assert perform(script, tmp_path, Manner(pauses=True)).longest >= 0.39


@pytest.mark.system
def test_a_process_that_began_when_another_had_ended_waits_for_it(tmp_path: Path) -> None:
    program = """\
import os, subprocess, sys, time
write = 'import os; out = os.open("one", os.O_CREAT | os.O_WRONLY); os.write(out, b"1")'
command = [sys.executable, "-c", f"{write}; import time; time.sleep(0.5)"]
both = [subprocess.Popen(command) for _ in range(2)]
for one in both: one.wait()
read = 'import os; found = os.open("one", os.O_RDONLY); os.read(found, 10)'
subprocess.run([sys.executable, "-c", read])
"""
    job = read([record_run(tmp_path, program)])
    script = script_of(job)
    verbs = np.concatenate([seat["verb"] for seat in script.seats])
    assert (verbs == END).any() and (verbs == WAIT).any()
    assert fidelity(job, script, perform(script, tmp_path)).exact


def test_of_barriers_without_io_in_between_the_first_and_the_last_are_played() -> None:
    job = make_job(2)
    job.function_names = ["MPI_Barrier"]
    for number, start in enumerate((1.0, 2.0, 3.0, 7.0)):
        events = np.zeros(2, EVENT)
        events["process"], events["layer"], events["flags"], events["count"] = (
            (0, 1),
            COMMUNICATION,
            8,
            1,
        )
        events["offset"], events["start"] = number, (start, start + 0.5)
        job.events = np.concatenate([job.events, events])
    found = find_barriers(job, job.events["process"].astype(np.int64), 2, np.array([0.5, 5.0]))
    assert sorted((float(job.events["start"][rows[0]]), ranks) for ranks, rows in found) == [
        (1.0, (0, 1)),
        (3.0, (0, 1)),
        (7.0, (0, 1)),
    ]


def of_one_file(*calls: tuple[str, str, int]) -> Job:
    """Makes MPI-IO calls of one process in this order: function, kind and offset."""
    job = make_job(1, mpi=True)
    for number, (function, kind, offset) in enumerate((("open", "open", 1), *calls)):
        add_events(
            job,
            0,
            "/data",
            kind,
            start=number,
            offset=offset,
            layer="mpiio",
            function=f"MPI_File_{function}",
        )
    return job


@pytest.mark.parametrize(
    ("function", "offset", "known"),
    [("write", 8, True), ("write", -1, False), ("write_shared", -1, True)],
)
def test_the_offset_of_a_call_has_to_be_known_unless_ranks_share_the_pointer(
    function: str, offset: int, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: "found")
    job = of_one_file((function, "write", offset))
    why = collective.why_not(job, np.arange(2), np.zeros(2, int))
    assert why == ("" if known else "the log lacks the offsets of some calls")


def test_a_seek_goes_to_the_next_call_with_a_pointer_of_ones_own() -> None:
    job = of_one_file(
        ("seek", "seek", -1),
        ("write_shared", "write", -1),
        ("write_at", "write", 5),
        ("write", "write", 77),
    )
    script = Script([], ["/data"], [], ranks=1)
    made, _ = collective.operations(job, np.arange(5), np.zeros(5, int), script)
    assert made["offset"].tolist()[1] == 77


def test_waits_between_processes() -> None:
    job = Job("x", "pario", processes=new_processes(3))
    job.processes["start"], job.processes["end"] = [0, 0, 5], [4, 6, 9]
    assert waits(job, np.arange(3), np.array([0, 1, 2])) == {2: [0]}
    assert waits(job, np.arange(3), np.array([0, 1, 0])) == {}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--events-limit", "0"), "it has counters only"),
        (("--files-limit", "3"), "files are not kept"),
    ],
)
def test_an_incomplete_log_is_refused(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    program = (
        'import os\nfor number in range(200): os.close(os.open(f"file{number}", os.O_CREAT |'
        " os.O_WRONLY))\n"
    )
    with pytest.raises(ReplayError, match=said) as raised:
        script_of(read([record_run(tmp_path, program, *options)]))
    assert "record again with pario run" in str(raised.value)


def test_a_truncated_log_is_refused_with_that_reason(tmp_path: Path) -> None:
    program = (
        'import os\nout = os.open("a", os.O_CREAT | os.O_WRONLY)\nfor _ in range(2000):'
        ' os.write(out, b"1")\n'
    )
    (log,) = record_run(tmp_path, program).glob("*.plog")
    os.truncate(log, log.stat().st_size // 2)
    with pytest.raises(
        ReplayError,
        match=(
            r"cannot be replayed: .*events are missing: the log was cut off.*expected: record again"
        ),
    ):
        script_of(read([log.parent]))


@pytest.mark.system
def test_the_run_of_a_killed_process_is_replayed_up_to_its_end(tmp_path: Path) -> None:
    program = """\
import os, signal
out = os.open("a", os.O_CREAT | os.O_WRONLY)
for _ in range(500): os.write(out, b"1")
if os.fork() == 0:
    for _ in range(500): os.write(out, b"1")
    os.kill(os.getpid(), signal.SIGKILL)
os.wait()
"""
    job = read([record_run(tmp_path, program)])
    script = script_of(job)
    found = fidelity(job, script, perform(script, tmp_path))
    assert found.exact and counts(found)["posix", "writes"] == (1000, 1000)


@pytest.mark.system
def test_the_command_reports_the_agreement(job: Job, tmp_path: Path) -> None:
    words = [
        sys.executable,
        "-m",
        "pario",
        "replay",
        str(tmp_path / "log"),
        "--on",
        str(tmp_path),
        "--json",
    ]
    done = run_command(words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["exact"]


@pytest.mark.parametrize(
    ("function", "verb"),
    [
        ("openat64", "open"),
        ("__pread64_chk", "pread"),
        ("fgets_unlocked", "fread"),
        ("__vfprintf_chk", "fprintf"),
        ("rename", ""),
    ],
)
def test_verbs_of_functions(function: str, verb: str) -> None:
    assert verb_of(function) == verb


def test_of_a_file_that_is_open_twice_each_call_goes_where_it_begins() -> None:
    known = numbers()
    steps = [
        ("open", 0, 0),
        ("open", 0, 0),
        ("read", 0, 10),
        ("read", 0, 10),
        ("read", 10, 5),
        ("pread", 3, 4),
        ("read", 10, 5),
        ("close", 0, 0),
    ]
    verb, offset, length = (
        np.array(column)
        for column in zip(*((known[verb], at, size) for verb, at, size in steps), strict=True)
    )
    found = assign(Calls(verb, np.zeros(8, np.int64), np.zeros(8, bool), offset, length))
    first, second = found.slot[0], found.slot[1]
    assert first != second
    assert sorted([found.slot[2], found.slot[3]]) == sorted([first, second])
    assert sorted([found.slot[4], found.slot[6]]) == sorted([first, second])
    assert (found.verb == verb).all() and not found.attach and not found.dropped


def test_a_descriptor_from_elsewhere_is_attached_and_used_at_offsets() -> None:
    known = numbers()
    verb = np.array([known["write"], known["write"], known["close"]])
    found = assign(
        Calls(
            verb, np.zeros(3, np.int64), np.zeros(3, bool), np.array([5, 9, 0]), np.array([4, 4, 0])
        )
    )
    assert found.attach == [0]
    assert found.verb.tolist() == [known["pwrite"], known["pwrite"], known["close"]]


def darshan(place: Path, reads: int, writes: int, traced: int) -> Job:
    """Makes a Darshan log of one process that wrote a file and then read it; ``traced`` of its
    writes have segments."""
    record = posix_record(1, 0, {0: 1, 3: reads, 4: writes, 14: 512 * reads, 15: 512 * writes})
    trace = dxt_record(1, 0, segments(traced), segments(reads, first=1.0))
    log = DarshanLog(names={1: str(place / "data")}, modules={"POSIX": record, "DXT_POSIX": trace})
    return read([log.write(place / "one.darshan")])


@pytest.mark.system
def test_the_segments_of_a_darshan_log_are_played(tmp_path: Path) -> None:
    job = darshan(tmp_path, reads=3, writes=5, traced=5)
    script = script_of(job)
    both = counts(fidelity(job, script, perform(script, tmp_path)))
    assert both["posix", "writes"] == (5, 5) and both["posix", "reads"] == (3, 3)
    assert both["posix", "bytes_read"] == (3 * 512,) * 2


@pytest.mark.system
def test_a_darshan_log_with_a_part_of_the_calls_is_refused_unless_the_part_is_wanted(
    tmp_path: Path,
) -> None:
    job = darshan(tmp_path, reads=3, writes=5, traced=4)
    with pytest.raises(ReplayError, match=r"1 of 5 writes \(posix\) have no event"):
        script_of(job)
    assert script_of(job, partial=True).calls == 1 + 4 + 3


def test_a_place_that_is_no_directory_is_refused(job: Job, tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="nowhere is no directory"):
        perform(script_of(job), tmp_path / "nowhere")


@pytest.mark.system
@pytest.mark.parametrize(("total", "refused"), [(1 << 20, True), (0, False)])
def test_a_full_directory_is_refused_unless_its_size_is_unknown(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, total: int, refused: bool
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(total=total, free=0))
    if refused:
        with pytest.raises(ReplayError, match=r"has 0 B left; the files that the run found need"):
            perform(script_of(job), tmp_path)
    else:
        assert perform(script_of(job), tmp_path).seconds


@pytest.mark.system
def test_the_error_that_stops_a_replay_is_named(job: Job, tmp_path: Path) -> None:
    script = script_of(job)
    script.seats[0] = script.seats[0].copy()
    script.seats[0]["verb"][-1] = numbers()["unlink"]
    script.seats[0]["path"][-1] = script.paths.index(str(tmp_path / "missing"))
    with pytest.raises(ReplayError, match=r"of the replay failed: .*unlink .*missing.*ENOENT"):
        perform(script, tmp_path)


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("/a/b", "a/b"),
        ("../../a", "a"),
        ("/../a", "a"),
        ("a/../../../b", "b"),
        ("//a/./b", "a/b"),
        ("/..", "."),
        ("", "."),
    ],
)
def test_a_file_of_a_replay_lies_below_its_directory_for_any_name(path: str, inside: str) -> None:
    assert below(Path("/scratch"), path) == Path("/scratch") / inside


@pytest.mark.system
def test_a_process_that_fails_ends_those_that_wait_for_it(tmp_path: Path) -> None:
    known, missing = numbers(), np.zeros(1, OPERATION)
    missing["verb"] = known["unlink"]
    waiting = np.zeros(1, OPERATION)
    waiting["verb"] = WAIT
    with pytest.raises(ReplayError, match=r"1 process of the replay failed: .*ENOENT"):
        perform(Script([waiting, missing], ["/missing"], [], ranks=0, waits=[[1]]), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_buffer_is_as_large_as_the_largest_call_that_moves_bytes() -> None:
    calls = np.zeros(3, OPERATION)
    calls["verb"] = [numbers()[name] for name in ("posix_fallocate", "pwrite", "fgetc")]
    calls["length"] = [1 << 50, 512, 1 << 40]
    assert largest_of(calls) == 512
    assert largest_of(calls[:0]) == 0


@pytest.mark.system
def test_a_name_that_was_made_anew_after_a_renaming_is_opened(tmp_path: Path) -> None:
    program = """\
import os
for number in range(2):
    os.close(os.open("new", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    os.rename("new", f"kept{number}")
"""
    job = read([record_run(tmp_path, program)])
    script = script_of(job)
    assert fidelity(job, script, perform(script, tmp_path)).exact


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_replay_ended_by_a_signal_leaves_no_files(tmp_path: Path, number: signal.Signals) -> None:
    program = """\
import os, signal, sys
from pathlib import Path
from pario.prove.replay import Script, perform
def prepare(script, root, **options):
    (root / "large").touch()
    os.kill(os.getpid(), int(sys.argv[2]))
sys.modules["pario.prove.replay.perform"]._prepare_files = prepare
signal.signal(int(sys.argv[2]), signal.SIG_DFL)
perform(Script([], [], [], ranks=0), Path(sys.argv[1]))
"""
    done = run_command([sys.executable, "-c", program, str(tmp_path), str(int(number))])
    assert done.returncode == 128 + number, done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("length", "played"), [(100, 100), (1 << 40, 2**31 - 1), (-5, 0)])
def test_no_text_is_longer_than_printf_can_make_it(length: int, played: int) -> None:
    job = make_job(1, wall=1.0)
    add_events(
        job,
        0,
        "/out",
        "open",
        start=0.1,
        layer="stdio",
        function="fopen",
        offset=os.O_CREAT | os.O_WRONLY,
    )
    add_events(job, 0, "/out", "write", start=0.2, layer="stdio", function="fprintf", length=length)
    add_events(job, 0, "/out", "close", start=0.3, layer="stdio", function="fclose")
    ((_, text, _),) = script_of(job, partial=True).seats
    assert (text["verb"], text["length"]) == (numbers()["fprintf"], played)


def test_a_descriptor_that_cannot_be_made_is_reported_with_its_own_error(tmp_path: Path) -> None:
    attached = np.zeros(1, OPERATION)
    attached["verb"], attached["offset"] = numbers()["attach"], os.O_RDWR
    with pytest.raises(ReplayError, match=r"attach .*/folder: EISDIR"):
        perform(Script([attached], ["/folder"], [], ranks=0, directories=[0], slots=1), tmp_path)


def test_open_files_are_closed_also_if_the_directory_is_named_by_a_link(
    tmp_path: Path,
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    within, beside = (
        os.open(tmp_path / name, os.O_CREAT | os.O_WRONLY) for name in ("real/file", "beside")
    )
    close_files(str(tmp_path / "link"))
    os.close(beside)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(within)


LEFT_OPEN = """\
import os, sys
import numpy as np
from pario._native import ReplayPlayer
from pario.prove.replay.script import OPERATION
from pario.prove.replay.verbs import numbers
calls = np.zeros(5, OPERATION)
calls["verb"] = [numbers()[name] for name in ("fopen", "setvbuf", "fwrite", "setvbuf", "fwrite")]
calls["offset"][0] = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
calls["length"][1:] = 1 << 20, 1000, 1 << 21, 500
player = ReplayPlayer([os.fsencode(sys.argv[1])], 1, 1000)
player.play(calls.view(np.uint8).reshape(5, OPERATION.itemsize), False)
del player
"""


def test_the_buffer_of_an_open_stream_is_written_at_the_end(
    tmp_path: Path,
) -> None:
    run_command([sys.executable, "-c", LEFT_OPEN, tmp_path / "out"], status=0)
    written = (tmp_path / "out").read_bytes()
    assert len(written) == 1500 and 0 not in written


@pytest.mark.parametrize(("mode", "lines"), [(0, 0), (1, 100)])
def test_writes_to_a_line_buffered_stream_end_lines(tmp_path: Path, mode: int, lines: int) -> None:
    calls = np.zeros(102, OPERATION)
    calls["verb"] = [numbers()[name] for name in ("fopen", "setvbuf", *["fwrite"] * 100)]
    calls["offset"][0] = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    calls["length"][1:] = [1 << 16, *[37] * 100]
    calls["other"][1] = mode
    player = ReplayPlayer([os.fsencode(tmp_path / "out")], 1, 1000)
    player.play(calls.view(np.uint8).reshape(102, OPERATION.itemsize), False)
    assert (tmp_path / "out").read_bytes().count(b"\n") == lines


def test_mpi_transfers_get_the_arguments_of_their_functions() -> None:
    seen: list[tuple[int, ...]] = []
    word = ctypes.c_size_t
    kinds = [word, ctypes.c_int64, word, ctypes.c_int, word, word]

    def call_at(file: int, offset: int, buffer: int, count: int, kind: int, status: int) -> int:
        seen.append((file, offset, count, kind))
        return 0

    def call(file: int, buffer: int, count: int, kind: int, status: int) -> int:
        seen.append((file, count, kind))
        return 5

    at, plain = (
        ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(call_at),
        ctypes.CFUNCTYPE(ctypes.c_int, word, *kinds[2:])(call),
    )
    player = ReplayPlayer([b"/data"], 2, 100)
    player.use([ctypes.cast(one, ctypes.c_void_p).value or 0 for one in (at, plain)], 77)
    player.use_file(1, 42)
    calls = np.zeros(2, OPERATION)
    calls["verb"], calls["other"], calls["slot"] = (
        [numbers()["mpi_transfer_at"], numbers()["mpi_transfer"]],
        (0, 1),
        1,
    )
    calls["offset"], calls["length"] = 1 << 40, (100, 50)
    with pytest.raises(OSError, match=r"mpi_transfer.*EIO"):
        player.play(calls.view(np.uint8).reshape(2, OPERATION.itemsize), False)
    assert seen == [(42, 1 << 40, 100, 77), (42, 50, 77)]
    calls["may_fail"] = 1
    player.play(calls.view(np.uint8).reshape(2, OPERATION.itemsize), False)
    assert len(seen) == 4
