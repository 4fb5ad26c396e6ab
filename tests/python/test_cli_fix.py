"""``pario run --fix``: the sequence of run, advise, second run and comparison."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from pario.cli import fix as loop
from pario.cli.fix import equalise_caches
from pario.see.launch import Settings
from pario.settings import load
from tests.diagnosis import corpus
from tests.python.jobs import add_record, make_job
from tests.python.support import timed
from tests.support.commands import run_command

PARIO = [sys.executable, "-m", "pario", "run"]
#: Seconds of runs: settings help.
FASTER = {"before": 2.0, "after": 1.0}

#: Writes a file value by value, which settings can repair; prints whether it runs with settings.
#: Its calls take several times the 0.05 s of a finding on fast machines, too.
SMALL_WRITES = """\
import os, sys
out = os.open("out.dat", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
for value in range(600_000):
    os.write(out, b"8 bytes.")
os.close(out)
print("again" if "PARIO_STREAMS" in os.environ else "first", flush=True)
"""


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps judgements of settings from other tests, whose programs have the same pattern."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


def fix(
    place: Path,
    *command: str,
    options: tuple[str, ...] = ("--measure", "0"),
    times: timed.Times | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs the loop; with ``times``, as if runs and replays took these seconds."""
    words = ["run", "--fix", "-o", "loop", *options, "--", *command]
    pario = [timed.__file__, json.dumps(times)] if times else ["-m", "pario"]
    return run_command([sys.executable, *pario, *words], cwd=place)


def fix_small_writes(
    place: Path, *options: str, end: str = "", times: timed.Times | None = None
) -> subprocess.CompletedProcess[str]:
    words = (sys.executable, "-c", SMALL_WRITES + end)
    return fix(place, *words, options=("--measure", "0", *options), times=times)


#: The run with settings takes longer than the whole run before it in other calls, or with --busy
#: in its computation.
LONGER = """
import glob, json, time
if "PARIO_STREAMS" in os.environ:
    (first,) = glob.glob("loop/before/**/job.json", recursive=True)
    with open(first) as file: job = json.load(file)
    end = time.monotonic() + job["end"] - job["start"] + 0.5
    if "--busy" in sys.argv:
        while time.monotonic() < end: pass
    other = os.open("other.dat", os.O_CREAT | os.O_WRONLY)
    while time.monotonic() < end:
        os.pwrite(other, bytes(1 << 20), 0)
        os.fsync(other)
"""


@pytest.mark.system
def test_the_program_runs_again_with_the_settings_and_both_runs_are_compared(
    tmp_path: Path,
) -> None:
    done = fix_small_writes(tmp_path, "--verify", "out.dat", times=FASTER)
    assert done.stdout == "first\nagain\nfirst\n"
    assert done.returncode == 0
    assert "settings for 1 of " in done.stderr
    assert "The run with settings takes 1.00 s instead of 2.00 s" in done.stderr
    assert "To use the settings: pario run --with loop/pario.toml -- " in done.stderr
    assert "1 output file: identical on both sides." in done.stderr
    (section,) = load(tmp_path / "loop" / "pario.toml").sections
    assert section.match == str(tmp_path / "out.dat")
    assert sorted(path.name for path in (tmp_path / "loop").iterdir()) == [
        "after",
        "before",
        "compare.html",
        "pario.toml",
    ]


@pytest.mark.system
def test_settings_that_did_not_pay_are_not_proposed_again(tmp_path: Path) -> None:
    first = fix_small_writes(tmp_path, "--repeat", "1", end=LONGER)
    assert "not recommended: no gain is shown" in first.stderr
    shutil.rmtree(tmp_path / "loop")
    again = fix_small_writes(tmp_path, "--repeat", "1", end=LONGER)
    assert again.stdout == "first\n"
    assert "an earlier run was not faster with it: streams.size = 8M" in again.stderr
    assert "pario: the command is not run again" in again.stderr
    (kept,) = Path(os.environ["XDG_STATE_HOME"]).rglob("rejected-*.json")
    os.utime(kept, (0, 0))
    shutil.rmtree(tmp_path / "loop")
    later = fix_small_writes(tmp_path, "--repeat", "1", end=LONGER)
    assert later.stdout == "first\nagain\n"


@pytest.mark.system
def test_a_run_that_only_computes_longer_does_not_judge_the_settings(tmp_path: Path) -> None:
    words = (sys.executable, "-c", SMALL_WRITES + LONGER, "--busy")
    done = fix(tmp_path, *words, options=("--measure", "0", "--repeat", "1"))
    assert "the settings are not judged" in done.stderr
    assert not [*Path(os.environ["XDG_STATE_HOME"]).rglob("rejected-*.json")]


@pytest.mark.system
def test_a_dry_run_stops_before_the_second_run(tmp_path: Path) -> None:
    done = fix_small_writes(tmp_path, "--dry-run")
    assert done.stdout == "first\n"
    assert "--with loop/pario.toml" in done.stderr
    assert load(tmp_path / "loop" / "pario.toml").sections
    assert not (tmp_path / "loop" / "after").exists()


@pytest.mark.system
@pytest.mark.parametrize("reads", [True, False])
def test_a_program_is_not_run_again_without_the_bytes_of_its_pipe(
    tmp_path: Path, reads: bool
) -> None:
    program = ("import sys; sys.stdin.read()\n" if reads else "") + SMALL_WRITES
    words = [*PARIO, "--fix", "--measure", "0", "-o", "loop", "--", sys.executable, "-c", program]
    done = run_command(words, cwd=tmp_path, input="values\n")
    assert ("read its standard input from a pipe" in done.stderr) == reads
    assert (tmp_path / "loop" / "after").exists() != reads


@pytest.mark.system
def test_the_exit_status_is_that_of_the_second_run(tmp_path: Path) -> None:
    done = fix_small_writes(tmp_path, end="sys.exit(7 if 'PARIO_STREAMS' in os.environ else 0)\n")
    assert done.returncode == 7
    assert "The run with settings failed" in done.stderr
    assert "with these settings the program failed: exit status 7" in done.stderr


@pytest.mark.system
def test_a_program_that_fails_is_not_run_again(tmp_path: Path) -> None:
    done = fix_small_writes(tmp_path, end="sys.exit(3)\n")
    assert (done.stdout, done.returncode) == ("first\n", 3)
    assert "not run again" in done.stderr


@pytest.mark.system
def test_a_program_without_findings_is_not_run_again(tmp_path: Path) -> None:
    done = fix(tmp_path, "sh", "-c", "echo once")
    assert (done.stdout, done.returncode) == ("once\n", 0)
    assert "there is nothing to set\npario: the command is not run again" in done.stderr


@pytest.mark.system
def test_outputs_that_differ_are_reported_last(tmp_path: Path) -> None:
    end = "open('other.txt', 'w').write(str('PARIO_STREAMS' in os.environ))\n"
    done = fix_small_writes(tmp_path, "--verify", "*.txt", end=end)
    assert "look at them before you use these settings" in done.stderr.splitlines()[-1]


@pytest.mark.system
def test_repetitions_alternate_and_report_noise(tmp_path: Path) -> None:
    done = fix_small_writes(tmp_path, "--repeat", "3")
    assert done.stdout == "first\nagain\n" * 3
    assert "of 3 and 3 runs" in done.stderr.replace("\n", " ")
    for side in ("before", "after"):
        assert sorted(path.name for path in (tmp_path / "loop" / side).iterdir()) == ["1", "2", "3"]


@pytest.mark.system
def test_the_users_own_settings_take_precedence(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('[[file]]\nmatch = "*.h5"\nstreams.size = "2M"\n')
    done = fix(
        tmp_path,
        sys.executable,
        "-c",
        SMALL_WRITES + "print(os.environ['PARIO_STREAMS'])",
        options=("--measure", "0", "--with", "own.toml"),
        times=FASTER,
    )
    first, again, _ = (line for line in done.stdout.splitlines() if line.startswith("*.h5"))
    assert first == "*.h5:size=2M"
    assert again.startswith("*.h5:size=2M,/")


@pytest.mark.system
@pytest.mark.parametrize(("later", "counts"), [(1.2, True), (3.9, False)])
def test_a_slow_first_run_is_not_counted_as_gain(
    tmp_path: Path, later: float, counts: bool
) -> None:
    times = {"before/1": 4.0, "before/2": later, "after": 1.0}
    lines = fix_small_writes(tmp_path, times=times).stderr.splitlines()
    remarks = [line for line in lines if line.endswith("only the later one is compared")]
    assert len(remarks) == counts
    if counts:
        assert f"the first run took 4.00 s, the same run later {later:.2f} s" in remarks[0]
    (result,) = (line for line in lines if "run with settings takes" in line)
    assert f"takes 1.00 s instead of {later if counts else 3.95:.2f} s" in result


@pytest.mark.system
def test_a_single_repetition_forbids_the_third_run(tmp_path: Path) -> None:
    assert fix_small_writes(tmp_path, "--repeat", "1").stdout == "first\nagain\n"


@pytest.mark.system
def test_settings_without_gain_are_not_recommended(tmp_path: Path) -> None:
    done = fix_small_writes(tmp_path, end=LONGER)
    assert done.stdout == "first\nagain\n"
    assert done.stderr.splitlines()[0].startswith("pario: the program will run once as it is, ")
    assert "pario: the settings are not recommended: no gain is shown" in done.stderr
    assert "To use the settings" not in done.stderr


@pytest.mark.system
def test_settings_are_measured_by_replays_before_the_second_run(tmp_path: Path) -> None:
    times = FASTER | {"as it is": 0.5, "with settings": 0.1}
    done = fix(tmp_path, sys.executable, "-c", SMALL_WRITES, options=(), times=times)
    head, table = done.stderr.split("pario: measured by replays of all calls")
    assert "pario: measuring 1 remedy by replays in " in head
    as_it_is, with_settings = (line.split() for line in table.splitlines()[1:3])
    assert as_it_is == ["0.50", "s", "as", "it", "is"]
    assert with_settings[:2] == ["0.10", "s"] and with_settings[-1] == "set"
    assert not list(tmp_path.glob("*pario-replay*"))


@pytest.mark.parametrize(
    ("status", "options"), [(0, ()), (3, ()), pytest.param(0, ("--all",), marks=pytest.mark.system)]
)
@pytest.mark.system
def test_json_is_the_report_if_there_is_no_second_run(
    tmp_path: Path, status: int, options: tuple[str, ...]
) -> None:
    command = ["sh", "-c", f"echo once; exit {status}"]
    done = fix(tmp_path, *command, options=("--measure", "0", "--json", *options))
    assert json.loads(done.stdout)["job"]["exit_status"] == status
    assert done.returncode == status
    assert "once\n" in done.stderr


#: Sends a signal to pario, which passes it on, or to itself, in the run with settings.
INTERRUPTED = """
import signal, time
if "PARIO_STREAMS" in os.environ:
    {before}
    os.kill({process}, signal.{number})
    time.sleep(60)
"""


@pytest.mark.system
@pytest.mark.parametrize(
    ("number", "process", "before", "status"),
    [
        ("SIGTERM", "os.getppid()", "", -15),
        ("SIGTERM", "os.getppid()", "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))", 5),
        ("SIGINT", "os.getpid()", "signal.signal(signal.SIGINT, signal.SIG_DFL)", -2),
    ],
)
def test_an_interrupt_is_not_blamed_on_the_settings(
    tmp_path: Path, number: str, process: str, before: str, status: int
) -> None:
    end = INTERRUPTED.format(number=number, process=process, before=before)
    done = fix_small_writes(tmp_path, end=end)
    assert done.returncode == status
    assert done.stdout == "first\nagain\n"
    assert done.stderr.splitlines()[-1] == (
        f"pario: interrupted by {number}: the settings are not judged"
    )
    assert "with these settings the program failed" not in done.stderr


@pytest.mark.system
def test_an_interrupt_of_the_first_run_is_no_failure(tmp_path: Path) -> None:
    done = fix(tmp_path, "sh", "-c", "kill -TERM $PPID; exec sleep 60")
    assert "pario: the program was interrupted by SIGTERM: no settings are sought" in done.stderr
    assert done.returncode == -15


@pytest.mark.system
def test_json_is_the_comparison(tmp_path: Path) -> None:
    done = fix_small_writes(tmp_path, "--json", times=FASTER)
    document = json.loads(done.stdout)
    assert done.stderr.endswith("again\nfirst\n\n")
    assert (document["a"]["name"], document["b"]["name"]) == ("before", "after")
    assert dict(document["b"]["settings"])["PARIO_STREAMS"].startswith(str(tmp_path / "out.dat"))


FLUSHES = """\
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  FILE* out = fopen("out.dat", "w");
  for (int i = 0; i < 200000; i++) fprintf(out, "line %d\\n", i), fflush(out);
  fclose(out);
  return puts(getenv("PARIO_STREAMS") != NULL ? "again" : "first") < 0;
}
"""


@pytest.mark.system
def test_risky_settings_are_named_and_applied_only_if_allowed(tmp_path: Path) -> None:
    (tmp_path / "flushes.c").write_text(FLUSHES)
    run_command(["gcc", "-O1", "-o", "flushes", "flushes.c"], cwd=tmp_path, status=0)
    done = fix(tmp_path, "./flushes", options=("--measure", "0", "--dry-run"))
    assert "Only with --allow ignoreflush, which measures it: flushes write nothing" in done.stderr
    assert "ignoreflush = true" in (tmp_path / "loop" / "pario.toml").read_text()
    for allow in (["--allow", "ignoreflush"], ["--allow"]):
        done = fix(
            tmp_path,
            "./flushes",
            options=("--measure", "0", "-o", f"loop{len(allow)}", "--verify", "out.dat", *allow),
            times=FASTER,
        )
        assert done.stdout == "first\nagain\nfirst\n"
        assert "1 output file: identical on both sides." in done.stderr


@pytest.mark.parametrize("option", ["--dry-run", "--allow"])
def test_options_of_the_loop_alone_are_refused(tmp_path: Path, option: str) -> None:
    done = run_command([*PARIO, option, "--", "true"], cwd=tmp_path)
    assert done.returncode == 2
    assert "belongs to --fix" in done.stderr


@pytest.mark.system
@pytest.mark.mpi
@pytest.mark.parametrize(
    ("name", "scale", "saved"),
    [
        ("missing_collectives", 0.2, "system_writes"),
        pytest.param("hole_rmw", 1, "system_bytes_read", marks=pytest.mark.exhaustive),
    ],
)
def test_bad_mpiio_is_repaired_with_the_same_outputs(
    tmp_path: Path, name: str, scale: float, saved: str
) -> None:
    if not corpus.mpiexec():
        pytest.skip("no mpiexec beside this Python (pip install mpich)")
    (program,) = corpus.select([name])
    built, work = tmp_path / "built", tmp_path / "work"
    for directory in (built, work):
        directory.mkdir()
    corpus.build(built, name)
    corpus.prepare(program, built, work, scale=scale)
    done = fix(
        tmp_path,
        *corpus.command(program, built, work, scale=scale),
        options=("--measure", "0", "--verify", "work/*.dat", "--json"),
    )
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert [output["state"] for output in document["outputs"]] == ["identical"]
    assert program.rules[0] in {row["rule"] for row in document["findings"]}
    measures = {row["key"]: row for row in document["measures"]}
    before, after = (measures[saved][side]["values"][0] for side in "ab")
    assert after < before / 2
    moved = [measures[f"system_bytes_{word}"]["b"]["values"][0] for word in ("read", "written")]
    others = 16 << 20  # of the launcher and of the tracer
    assert sum(moved) <= 1.5 * measures["bytes_written"]["a"]["values"][0] + others


@pytest.mark.system
def test_the_caches_of_all_files_are_equalised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report shows a thousand files and sums up the others."""
    written, read = ([tmp_path / f"{kind}{n}" for n in range(1500)] for kind in "wr")
    job = make_job(ranks=1)
    for paths, counter in ((written, "writes"), (read, "reads")):
        for path in paths:
            path.touch()
        add_record(job, 0, [*map(str, paths)], **{counter: 1})
    add_record(job, 0, ["<stdin>", "/dev/null", str(tmp_path / "removed")], writes=1)
    seen: list[Path] = []

    def note(descriptor: int) -> None:
        seen.append(Path(f"/proc/self/fd/{descriptor}").readlink())

    monkeypatch.setattr("os.fdatasync", note)
    monkeypatch.setattr("pario.copying.drop_from_cache", note)
    equalise_caches(job, cold=False)
    assert sorted(seen) == sorted(written)
    seen.clear()
    equalise_caches(job, cold=True)
    assert sorted(seen) == sorted(written + read)


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize(
    ("repeat", "order"), [(None, ["after", "before"]), (2, ["after", "before", "after"])]
)
def test_further_runs_begin_with_the_caches_of_the_first(
    cold: bool,
    repeat: int | None,
    order: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[object] = []

    def make_run(side: str, *_: object) -> Namespace:
        steps.append(side)
        outcome = Namespace(seconds=FASTER[side])
        return Namespace(outcome=outcome, failed=False, job="job", analysis=Namespace(cold=cold))

    def note_caches(job: object, *, cold: bool) -> None:
        steps.append((job, cold))

    (tmp_path / "pario.toml").touch()
    series, arguments = Namespace(directory=tmp_path), Namespace(repeat=repeat)
    runs = loop._Loop(series, ["true"], Settings(), arguments, (), sys.stderr)
    monkeypatch.setattr(loop._Loop, "run", lambda _, *words: make_run(*words))
    monkeypatch.setattr(loop, "equalise_caches", note_caches)
    runs.run_again(make_run("before"))
    assert steps[1:] == [step for side in order for step in (("job", cold), side)]
