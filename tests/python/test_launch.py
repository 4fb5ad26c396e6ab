"""The launcher keeps the command's streams, exit status and signals; launchers of one job share a
directory."""

from __future__ import annotations

import errno
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from pario.errors import ParioError
from pario.launchers import Seat, seat_of
from pario.see.launch import directory, program
from pario.see.launch.environment import Settings, check, traced_environment
from pario.see.launch.process import HeldSignals, run_child
from tests.support.commands import run_command, start_command
from tests.support.waiting import PATIENCE

PARIO = [sys.executable, "-m", "pario", "run", "--no-report"]


def pario_run(
    *command: str, cwd: Path, options: tuple[str, ...] = (), **kwargs: object
) -> subprocess.CompletedProcess[str]:
    return run_command(
        [*PARIO, *options, "--", *command],
        cwd=cwd,
        **kwargs,
    )


def test_output_and_exit_status_are_the_programs(tmp_path: Path) -> None:
    done = pario_run("sh", "-c", "echo out; echo err >&2; exit 7", cwd=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "err\n", 7)


def test_dies_of_the_signal_the_program_died_of(tmp_path: Path) -> None:
    assert pario_run("sh", "-c", "kill -TERM $$", cwd=tmp_path).returncode == -signal.SIGTERM
    assert pario_run("sh", "-c", "kill -KILL $$", cwd=tmp_path).returncode == -signal.SIGKILL


def test_passes_a_signal_on(tmp_path: Path) -> None:
    script = "trap 'echo got it; exit 3' USR1; echo ready; while :; do sleep 0.05; done"
    command = [*PARIO, "--", "sh", "-c", script]
    with start_command(command, cwd=tmp_path, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGUSR1)
        done = child.finish()
    assert (done.returncode, done.stdout) == (3, "got it\n")


@pytest.mark.parametrize("held", [None, HeldSignals()])
def test_an_interrupt_after_the_command_is_pythons_again(held: HeldSignals | None) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run_child(Path("/bin/true"), ["true"], os.environ, held)
        if held:
            held.release()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_program_starts_with_default_signal_actions(tmp_path: Path) -> None:
    done = pario_run(
        "sh", "-c", "yes | head -n 1 >/dev/null; grep SigIgn /proc/self/status", cwd=tmp_path
    )
    assert int(done.stdout.split()[1], 16) & (1 << (signal.SIGPIPE - 1)) == 0


def test_script_without_interpreter_line_runs_as_in_a_shell(tmp_path: Path) -> None:
    script = tmp_path / "job"
    script.write_text("echo hello $1\n")
    script.chmod(0o755)
    assert pario_run("./job", "you", cwd=tmp_path).stdout == "hello you\n"


@pytest.mark.system
@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["./none"], ["./none", "no such program"]),
        (["no-such-program-here"], ["no-such-program-here", "PATH"]),
        (["./folder"], ["folder", "directory"]),
        (["./plain"], ["plain", "not executable"]),
        (["plain"], ["plain: no such program in PATH", ": pario run -- ./plain"]),
        (["a.py"], [": pario run -- python a.py"]),
        (["./a.py"], ["./a.py is not executable", "(python ./a.py?)"]),
        (["cd", "/tmp"], ["command of the shell: pario run -- bash -c 'cd ...'"]),
        (["A_1=2", "true"], ["set variables before pario: A_1=2 pario run -- COMMAND"]),
        ([], ["expected", "COMMAND"]),
    ],
)
def test_command_that_cannot_run_is_named(
    tmp_path: Path, command: list[str], words: list[str]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "plain").write_text("")
    (tmp_path / "a.py").write_text("")
    done = pario_run(*command, cwd=tmp_path)
    assert done.returncode == 2
    assert all(word in done.stderr for word in words)
    assert not list(tmp_path.glob("*.pario"))


def test_an_argument_too_long_for_a_file_name_is_accepted(tmp_path: Path) -> None:
    assert pario_run("sh", "-c", "echo out " + "#" * 5000, cwd=tmp_path).stdout == "out\n"


def test_runs_are_numbered(tmp_path: Path) -> None:
    for _ in range(3):
        pario_run("true", cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*.pario")) == [
        "run-2.pario",
        "run-3.pario",
        "run.pario",
    ]
    job = json.loads((tmp_path / "run.pario" / "job.json").read_text())
    assert not list(tmp_path.glob("run.pario/launcher.*"))
    assert job["command"] == ["true"] and job["exit_status"] == 0 and job["end"] >= job["start"]


def test_a_directory_with_content_is_not_reused(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    done = pario_run("true", cwd=tmp_path, options=("-o", "mine"))
    assert done.returncode == 2 and "mine" in done.stderr and "exists" in done.stderr


def test_unwritable_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = pario_run("true", cwd=tmp_path, options=("-o", "file/run"))
    assert done.returncode == 2 and "file/run" in done.stderr and "-o" in done.stderr


#: Runs pario, whose launchers look for each other as long as a test waits.
PATIENT = """
import sys
from pario.cli import main
from pario.see.launch import directory
directory._RECENT_SECONDS = directory._LOOK_SECONDS = directory._LINGER_SECONDS = float(sys.argv[1])
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.system
def test_launchers_of_one_job_share_a_directory(tmp_path: Path) -> None:
    stale = tmp_path / "run.pario"
    stale.mkdir()
    long_ago = time.time() - 10 * PATIENCE
    (stale / "job.json").write_text(
        json.dumps({"command": ["sleep", "0.2"], "launchers": 3, "start": long_ago})
    )
    pario = [sys.executable, "-c", PATIENT, PATIENCE, *PARIO[3:]]
    with ExitStack() as stack:
        ranks = []
        for rank in ("2", "1", "0"):
            seat = {**os.environ, "PMI_RANK": rank, "PMI_SIZE": "3"}
            launcher = start_command([*pario, "--", "sleep", "0.2"], cwd=tmp_path, env=seat)
            ranks.append(stack.enter_context(launcher))
        assert [rank.wait_for_end() for rank in ranks] == [0, 0, 0]
    assert sorted(path.name for path in (tmp_path / "run-2.pario").glob("launcher.*")) == [
        f"launcher.{rank}.json" for rank in range(3)
    ]


def test_second_job_does_not_join_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["./app"]
    places: list[Path] = []
    for _ in range(2):
        other = threading.Thread(
            target=lambda: places.append(directory.join(None, Seat(1, 2), command).path)
        )
        other.start()
        places.append(directory.join(None, Seat(0, 2), command).path)
        other.join(PATIENCE)
    assert sorted(place.name for place in places) == ["run-2.pario"] * 2 + ["run.pario"] * 2


@pytest.mark.parametrize(
    ("environment", "seat"),
    [
        ({}, Seat(0, 1)),
        ({"PMI_RANK": "2", "PMI_SIZE": "4"}, Seat(2, 4)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "PMIX_RANK": "1"}, Seat(1, 2)),
        # of a batch script, not of a step
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, Seat(0, 1)),
        ({"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_STEP_ID": "0"}, Seat(3, 8)),
    ],
)
def test_seat_is_read_from_the_launchers_variables(environment: dict[str, str], seat: Seat) -> None:
    assert seat_of(environment) == seat


def test_static_program_is_recognised(tmp_path: Path) -> None:
    source = tmp_path / "a.c"
    source.write_text("int main(void) { return 0; }\n")
    run_command(["gcc", "-static", str(source), "-o", str(tmp_path / "static")], status=0)
    run_command(["gcc", str(source), "-o", str(tmp_path / "dynamic")], status=0)
    assert program.is_static(tmp_path / "static")
    assert not program.is_static(tmp_path / "dynamic")
    assert not program.is_static(source)
    warnings = list(
        program.warnings(["mpiexec", "-n", "4", str(tmp_path / "static")], Path("/bin/sh"))
    )
    assert len(warnings) == 1 and "statically linked" in warnings[0]


def test_other_preloaded_libraries_stay() -> None:
    environment = traced_environment(
        {"LD_PRELOAD": "libother.so"},
        Path("/logs"),
        Settings(chosen={"PARIO_TRACE_EVENTS_LIMIT": "0"}),
    )
    assert environment["LD_PRELOAD"].endswith("libpario.so:libother.so")
    assert (
        environment["PARIO_TRACE_EVENTS_LIMIT"] == "0" and environment["PARIO_TRACE_DIR"] == "/logs"
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"#!/bin/sh\r\n", "there is no '/bin/sh\\r', which its first line names"),
        (b"\x7fELF" + bytes(60), "built for another processor; rebuild it on this machine"),
    ],
    ids=["line-ends-of-windows", "processor"],
)
def test_a_program_that_the_system_does_not_start_is_explained(
    content: bytes, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "bad").write_bytes(content)
    (tmp_path / "bad").chmod(0o755)
    done = pario_run("./bad", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith(f"{reason}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["bad"]  # no empty log directory


def test_a_missing_launcher_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ParioError, match="mpiexec: no such program in PATH; load the module of"):
        program.resolve("mpiexec")


def test_a_program_of_another_system_is_named_with_its_interpreter(tmp_path: Path) -> None:
    segment = struct.pack("<IIQQQQQQ", 3, 4, 120, 0, 0, 16, 16, 1)
    head = (
        b"\x7fELF\x02\x01\x01"
        + bytes(9)
        + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    )
    path = tmp_path / "other"
    path.write_bytes(head + segment + b"/no/ld-musl.so.1\0")
    reason = program.describe_failure(path, FileNotFoundError(errno.ENOENT, "no"))
    assert reason.endswith(
        "there is no '/no/ld-musl.so.1', which it, built on another system, names"
    )


def test_unknown_program_error_is_a_pario_error() -> None:
    with pytest.raises(ParioError, match="no such program"):
        program.resolve("no-such-program-here")


def test_hints_of_the_command_line_come_after_those_of_the_environment():
    settings = Settings(chosen={"PARIO_MPIIO": "1"}, hints=("cb_nodes=2", "*.h5:striping_factor=4"))
    environment = traced_environment({"PARIO_HINTS": "*:cb_nodes=1"}, Path("/logs"), settings)
    assert environment["PARIO_MPIIO"] == "1"
    assert environment["PARIO_HINTS"] == "*:cb_nodes=1,*:cb_nodes=2,*.h5:striping_factor=4"


@pytest.mark.parametrize(
    ("hints", "given"),
    [
        ("", "nc_driver=mpiio"),
        ("nc_num_aggrs_per_node=2", "nc_num_aggrs_per_node=2;nc_driver=mpiio"),
        ("nc_driver=gio", "nc_driver=gio"),
    ],
)
def test_pnetcdf_uses_mpiio_under_parios_unless_the_user_chose(hints: str, given: str) -> None:
    environment = {"PNETCDF_HINTS": hints} if hints else {}
    settings = Settings(chosen={"PARIO_MPIIO": "1"})
    traced = traced_environment(environment, Path("/logs"), settings)
    assert traced["PNETCDF_HINTS"] == given
    assert traced_environment(environment, Path("/logs"), Settings()).get("PNETCDF_HINTS", "") == (
        hints
    )


def test_mpiio_is_the_programs_own_unless_asked_for():
    environment = traced_environment({}, Path("/logs"), Settings())
    assert "PARIO_MPIIO" not in environment and "PARIO_HINTS" not in environment


def test_open_mpi_gets_options_to_pass_the_variables_to_other_hosts(tmp_path: Path) -> None:
    (tmp_path / "prted").touch()
    environment = traced_environment(
        {"OMPI_MCA_mca_base_env_list": "MINE"}, Path("/logs"), Settings(), tmp_path / "mpirun"
    )
    assert environment["OMPI_MCA_mca_base_env_list"] == "MINE;LD_PRELOAD;PARIO_TRACE_DIR"


def test_open_mpi_4_gets_no_option_that_forbids_mpirun_x(tmp_path: Path) -> None:
    (tmp_path / "orted").touch()
    environment = traced_environment({}, Path("/logs"), Settings(), tmp_path / "mpirun")
    assert environment["OMPI_MCA_mca_base_env_list_internal"] == "LD_PRELOAD;PARIO_TRACE_DIR"
    assert "OMPI_MCA_mca_base_env_list" not in environment


def test_the_users_search_path_comes_after_the_meter_of_loaders() -> None:
    path = traced_environment({"PYTHONPATH": "/a:/b"}, Path("/logs"), Settings())["PYTHONPATH"]
    hook, *others = path.split(":")
    assert (Path(hook) / "sitecustomize.py").is_file() and others == ["/a", "/b"]
    assert traced_environment({"PYTHONPATH": path}, Path("/logs"), Settings())["PYTHONPATH"] == path
    assert ":" not in traced_environment({}, Path("/logs"), Settings())["PYTHONPATH"]


def test_library_is_preloaded_once_under_another_pario_run() -> None:
    outer = traced_environment({}, Path("/outer"), Settings())
    inner = traced_environment(outer, Path("/inner"), Settings())
    assert inner["LD_PRELOAD"] == outer["LD_PRELOAD"] and inner["PARIO_TRACE_DIR"] == "/inner"


@pytest.mark.system
@pytest.mark.parametrize(
    ("variables", "options", "complaint"),
    [
        (
            {"PARIO_TRACE_EVENTS_LIMIT": "lots"},
            [],
            "PARIO_TRACE_EVENTS_LIMIT=lots: expected a size such as 64K",
        ),
        ({"PARIO_TRACE_EVENT_LIMIT": "1M"}, [], "did you mean PARIO_TRACE_EVENTS_LIMIT?"),
        (
            {"PARIO_TRACE_MESSAGES": "perhaps"},
            [],
            "PARIO_TRACE_MESSAGES=perhaps: expected yes or no",
        ),
        ({}, ["--events-limit", "12X"], "PARIO_TRACE_EVENTS_LIMIT=12X: expected a size"),
        (
            {},
            ["--files-limit", "-1"],
            "PARIO_TRACE_FILES_LIMIT=-1: expected a number from 1 to 100000000",
        ),
        (
            {"PARIO_TRACE_FILES_LIMIT": "x"},
            ["--files-limit", "few"],
            "PARIO_TRACE_FILES_LIMIT=few: expected a number",
        ),
    ],
)
def test_bad_options_are_reported_once_before_the_run(
    tmp_path: Path, variables: dict[str, str], options: list[str], complaint: str
) -> None:
    words = [*PARIO, *options, "--", "sh", "-c", "echo ran"]
    done = run_command(words, cwd=tmp_path, env=os.environ | variables)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert complaint in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        ("cb_nods=2", "cb_nodes"),
        ("cb_buffer_size=many", "cb_buffer_size"),
        ("*.h5:cb_nodes=x", "cb_nodes"),
    ],
)
def test_a_bad_hint_is_reported_before_the_run_starts(hint, expected):
    with pytest.raises(ParioError, match=expected):
        check({}, Settings(hints=(hint,)))
