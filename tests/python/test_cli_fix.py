"""``pario run --fix``: the sequence of run, advise, second run and comparison."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pario.settings import load
from tests.diagnosis import corpus
from tests.support.commands import run_command

PARIO = [sys.executable, "-m", "pario", "run"]

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
    place: Path, *command: str, options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    words = [*PARIO, "--fix", "--measure", "0", "-o", "loop", *options, "--", *command]
    return run_command(words, cwd=place)


def fix_small_writes(place: Path, *options: str, end: str = "") -> subprocess.CompletedProcess[str]:
    return fix(place, sys.executable, "-c", SMALL_WRITES + end, options=options)


@pytest.mark.system
def test_the_program_runs_again_with_the_settings_and_both_runs_are_compared(
    tmp_path: Path,
) -> None:
    done = fix_small_writes(tmp_path, "--verify", "out.dat")
    assert done.stdout == "first\nagain\nfirst\n"
    assert done.returncode == 0
    assert "settings for 1 of " in done.stderr
    assert "The run with settings takes " in done.stderr
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
    sleeps = "import time\nif 'PARIO_STREAMS' in os.environ: time.sleep(10)\n"
    first = fix_small_writes(tmp_path, "--repeat", "1", end=sleeps)
    assert "not recommended: no gain is shown" in first.stderr
    shutil.rmtree(tmp_path / "loop")
    again = fix_small_writes(tmp_path, "--repeat", "1", end=sleeps)
    assert again.stdout == "first\n"
    assert "an earlier run was not faster with it: streams.size = 8M" in again.stderr
    assert "pario: the command is not run again" in again.stderr


@pytest.mark.system
def test_a_dry_run_stops_before_the_second_run(tmp_path: Path) -> None:
    done = fix_small_writes(tmp_path, "--dry-run")
    assert done.stdout == "first\n"
    assert "--with loop/pario.toml" in done.stderr
    assert load(tmp_path / "loop" / "pario.toml").sections
    assert not (tmp_path / "loop" / "after").exists()


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
        options=("--with", "own.toml"),
    )
    first, again, _ = (line for line in done.stdout.splitlines() if line.startswith("*.h5"))
    assert first == "*.h5:size=2M"
    assert again.startswith("*.h5:size=2M,/")


#: Settings repair its writes, and its first run takes longer, as if its files came from storage.
COLD_AT_FIRST = (
    SMALL_WRITES
    + """\
import time
from pathlib import Path
mark = Path("ran")
time.sleep(0.1 if mark.exists() else 3.0)
mark.touch()
"""
)


@pytest.mark.system
def test_a_slow_first_run_is_not_counted_as_gain(tmp_path: Path) -> None:
    done = fix(tmp_path, sys.executable, "-c", COLD_AT_FIRST)
    lines = done.stderr.splitlines()
    (remark,) = (line for line in lines if line.endswith("only the later one is compared"))
    (result,) = (line for line in lines if "run with settings takes" in line)
    later = remark.split("the same run later ")[1].split(" (")[0]
    assert f"instead of {later}" in result


@pytest.mark.system
def test_a_single_repetition_forbids_the_third_run(tmp_path: Path) -> None:
    assert fix_small_writes(tmp_path, "--repeat", "1").stdout == "first\nagain\n"


@pytest.mark.system
def test_settings_without_gain_are_not_recommended(tmp_path: Path) -> None:
    slow = "import time\nif 'PARIO_STREAMS' in os.environ: time.sleep(4)\n"
    done = fix_small_writes(tmp_path, end=slow)
    assert done.stdout == "first\nagain\n"
    assert done.stderr.splitlines()[0].startswith("pario: the program will run once as it is, ")
    assert "pario: the settings are not recommended: no gain is shown" in done.stderr
    assert "To use the settings" not in done.stderr


@pytest.mark.system
def test_settings_are_measured_by_replays_before_the_second_run(tmp_path: Path) -> None:
    words = [*PARIO, "--fix", "-o", "loop", "--", sys.executable, "-c", SMALL_WRITES]
    done = run_command(words, cwd=tmp_path)
    head, table = done.stderr.split("pario: measured by replays of all calls")
    assert "pario: measuring 1 remedy by replays in " in head
    as_it_is, with_settings = (line.split() for line in table.splitlines()[1:3])
    assert as_it_is[2:] == ["as", "it", "is"] and with_settings[-1] == "set"
    assert float(with_settings[0]) < float(as_it_is[0])
    assert not list(tmp_path.glob("pario-replay-*"))


@pytest.mark.parametrize(
    ("status", "options"), [(0, ()), (3, ()), pytest.param(0, ("--all",), marks=pytest.mark.system)]
)
def test_json_is_the_report_if_there_is_no_second_run(
    tmp_path: Path, status: int, options: tuple[str, ...]
) -> None:
    command = ["sh", "-c", f"echo once; exit {status}"]
    done = fix(tmp_path, *command, options=("--json", *options))
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
    done = fix_small_writes(tmp_path, "--json")
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
    done = fix(tmp_path, "./flushes", options=("--dry-run",))
    assert "Only with --allow ignoreflush: flushes write nothing" in done.stderr
    assert "ignoreflush = true" in (tmp_path / "loop" / "pario.toml").read_text()
    for allow in (["--allow", "ignoreflush"], ["--allow"]):
        done = fix(
            tmp_path,
            "./flushes",
            options=("-o", f"loop{len(allow)}", "--verify", "out.dat", *allow),
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
    ("name", "scale"),
    [("missing_collectives", 0.2), pytest.param("hole_rmw", 1, marks=pytest.mark.exhaustive)],
)
def test_bad_mpiio_is_repaired_with_the_same_outputs(
    tmp_path: Path, name: str, scale: float
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
        options=("--verify", "work/*.dat", "--json"),
    )
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert [output["state"] for output in document["outputs"]] == ["identical"]
    found = {row["rule"]: row for row in document["findings"]}
    assert found[program.rules[0]]["change"] in ("gone", "smaller")
    measures = {row["key"]: row for row in document["measures"]}
    moved = [measures[f"system_bytes_{word}"]["b"]["values"][0] for word in ("read", "written")]
    others = 16 << 20  # of the launcher and of the tracer
    assert sum(moved) <= 1.5 * measures["bytes_written"]["a"]["values"][0] + others
