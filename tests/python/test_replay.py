"""``pario replay`` repeats the calls and bytes of a run in the same order, in files created like
those of the run."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pario._native import ReplayPlayer
from pario.prove.replay import ReplayError, Script, fidelity, perform, script_of
from pario.prove.replay.perform import Manner
from pario.prove.replay.player import close_files, largest_of
from pario.prove.replay.script import END, OPERATION, WAIT, below
from pario.prove.replay.verbs import numbers
from pario.see.tables import read
from pario.see.tables.model import Job
from pario.settings import load
from tests.python.darshanlog import DarshanLog, dxt_record, posix_record, segments
from tests.python.jobs import add_events, make_job
from tests.support.commands import run_command

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


@pytest.mark.system
def test_a_kept_log_has_only_the_files_of_the_run(job: Job, tmp_path: Path) -> None:
    script, log = script_of(job), tmp_path / "replayed"
    performance = perform(script, tmp_path, Manner(log=log))
    names = {performance.job.path(row["file"]) for row in read([log]).records} - {"<stdin>"}
    assert {name for name in names if not Path(name).is_relative_to(performance.root)} == set()
    assert fidelity(job, script, performance).exact


def test_files_that_the_run_found_are_made_with_their_sizes(job: Job) -> None:
    script = script_of(job)
    sizes = {Path(script.paths[made.path]).name: made.size for made in script.files}
    assert sizes["found.dat"] == 10_000
    assert not {"out.dat", "missing", "text.txt"} & sizes.keys()


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
def test_redirections_of_a_shell_leave_no_descriptors_open(tmp_path: Path) -> None:
    """A shell closes the file of a redirection by dup2() of another one."""
    (tmp_path / "loop.sh").write_text("for i in $(seq 700); do echo $i >> log.txt; done\n")
    command = [sys.executable, "-m", "pario", "run", "--no-report", "-o", "log", "--"]
    run_command([*command, "bash", "loop.sh"], cwd=tmp_path, status=0)
    job = read([tmp_path / "log"])
    script = script_of(job)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    try:
        both = counts(fidelity(job, script, perform(script, tmp_path)))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert both["posix", "opens"][0] == both["posix", "opens"][1] >= 700


@pytest.mark.system
def test_lines_that_a_program_prints_into_a_redirection_are_replayed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pario", "run", "--no-report", "-o", "log", "--"]
    lines = "for (i = 0; i < 500; i++) { print i; fflush() }"
    (tmp_path / "print.sh").write_text(f"awk 'BEGIN {{ {lines} }}' > out.txt; exit\n")
    run_command([*command, "bash", "print.sh"], cwd=tmp_path, status=0)
    job = read([tmp_path / "log"])
    script = script_of(job)
    both = counts(fidelity(job, script, perform(script, tmp_path)))
    assert both["stdio", "writes"][0] == both["stdio", "writes"][1] >= 500
    names = [list(numbers())[verb] for seat in script.seats for verb in seat["verb"] if verb < 1000]
    assert names.index("fopen") > names.index("dup") < names.index("close", names.index("dup"))
    assert names[: names.index("fopen")].count("close") >= 2  # of the shell, before the program


@pytest.mark.system
def test_removed_directories_and_files_without_names_are_replayed(tmp_path: Path) -> None:
    program = """\
import os, shutil
os.makedirs("made/empty")
out = os.open("made/out", os.O_CREAT | os.O_WRONLY)
os.write(out, b"1234")
os.close(out)
shutil.rmtree("made")  # by unlinkat() with a flag for directories
for number in range(2):
    unnamed = os.open("unnamed", os.O_TMPFILE | os.O_RDWR)
    os.write(unnamed, b"12345678")
    os.close(unnamed)
"""
    (tmp_path / "unnamed").mkdir()
    try:
        os.close(os.open(tmp_path, os.O_TMPFILE | os.O_RDWR))
    except OSError:
        program = program[: program.index("for")]  # the file system has no files without names
    job = read([record_run(tmp_path, program)])
    script = script_of(job)
    both = counts(fidelity(job, script, perform(script, tmp_path)))
    assert both["posix", "writes"][0] == both["posix", "writes"][1]
    assert script.left_out["unlinkat"] == 1
    assert not {"made", "unnamed"} & {Path(script.paths[made.path]).name for made in script.files}


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


@pytest.mark.system
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
