"""How processes begin and end: nothing that was counted is lost, nothing is counted twice."""

from __future__ import annotations

import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.preload.conftest import Compile, Run, Trace

EXIT, IMMEDIATE, EXEC, ABORT, KILLED = 1, 2, 3, 5, 0


#: The signals whose default action ends a process; SIGABRT, SIGSEGV and SIGKILL among them.
FATAL = [
    *("SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL"),
    *("SIGUSR1", "SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGXCPU", "SIGXFSZ"),
    *("SIGVTALRM", "SIGPROF", "SIGIO", "SIGPWR", "SIGSYS"),
]
#: The argument of exit, and the status that the parent sees.
STATUSES = [(0, 0), (1, 1), (255, 255), (256, 0), (-1, 255), (-(2**31), 0)]


def check_end(run: Run, work: Path, status: int, end: tuple[int, int]) -> None:
    """The program ended as without the tracer, and its log is complete."""
    assert run.status == status
    assert run.counts(work / "ends")["writes"] == 1000
    assert run.counts(work / "ends")["bytes_written"] == 10000
    assert len(run.events(work / "ends", "write")) == 1000
    assert run.process(int(run.stdout)) == [end]


@pytest.mark.parametrize(("given", "status"), STATUSES)
@pytest.mark.parametrize(
    ("how", "kind"),
    [
        *(("return", EXIT), ("exit", EXIT)),
        *(("_exit", IMMEDIATE), ("_Exit", IMMEDIATE), ("quick_exit", IMMEDIATE)),
    ],
)
def test_every_exit_keeps_the_log_and_the_status(
    trace: Trace, build: Compile, work: Path, how: str, kind: int, given: int, status: int
) -> None:
    check_end(trace(build("ends.c"), how, given), work, status, (kind, status))


def test_threads_with_the_smallest_stacks_are_traced(
    trace: Trace, build: Compile, work: Path
) -> None:
    run = trace(build("small_stack.c"))
    if run.status == 77:
        pytest.skip("this machine has no stacks of 16 KiB")
    assert run.status == 0
    assert [run.counts(work / f"small{i}")["writes"] for i in range(8)] == [20] * 8


@pytest.mark.parametrize("name", FATAL)
def test_every_fatal_signal_keeps_the_log(
    trace: Trace, build: Compile, work: Path, name: str
) -> None:
    number = signal.Signals[name]
    check_end(trace(build("ends.c"), "signal", int(number)), work, -number, (KILLED, 0))


@pytest.mark.parametrize(
    ("how", "given", "status", "end"),
    [
        ("abort", 0, -signal.SIGABRT, (ABORT, signal.SIGABRT)),
        ("segv", 1, -signal.SIGSEGV, (KILLED, 0)),
        ("exit_group", 12, 12, (KILLED, 0)),
        ("exit_group", -1, 255, (KILLED, 0)),
        ("handler", 6, 6, (IMMEDIATE, 6)),
    ],
)
def test_other_ends_keep_the_log(
    trace: Trace,
    build: Compile,
    work: Path,
    how: str,
    given: int,
    status: int,
    end: tuple[int, int],
) -> None:
    check_end(trace(build("ends.c"), how, given), work, status, end)


def test_the_last_thread_ends_the_process(trace: Trace, build: Compile, work: Path) -> None:
    run = trace(build("ends.c"), "thread")
    assert run.status == 0
    assert run.counts(work / "ends")["bytes_written"] == 10004
    assert run.process(int(run.stdout)) == [(EXIT, 0)]


@pytest.mark.parametrize(("given", "status"), STATUSES)
def test_a_forked_child_keeps_its_log(
    trace: Trace, build: Compile, given: int, status: int
) -> None:
    run = trace(build("ends.c"), "fork", given)
    assert run.status == status
    ends = [(int(row["end_kind"]), int(row["end_code"])) for row in run.job.processes]
    assert ends == [(EXIT, status)] * 2


def test_an_image_ends_with_exec(trace: Trace, build: Compile, work: Path) -> None:
    run = trace(build("ends.c"), "exec")
    assert run.status == 0
    assert run.process(int(run.stdout)) == [(EXEC, 0), (EXIT, 0)]
    assert run.counts(work / "ends")["bytes_written"] == 10000


def test_an_image_goes_on_when_exec_fails(trace: Trace, build: Compile, work: Path) -> None:
    run = trace(build("ends.c"), "failed exec")
    assert run.status == 13
    assert run.process(int(run.stdout)) == [(EXIT, 13)]
    assert run.counts(work / "ends")["bytes_written"] == 10004


def test_fork_shares_the_offset_and_parts_the_logs(
    trace: Trace, build: Compile, work: Path
) -> None:
    run = trace(build("families.c"), "forked")
    assert run.status == 0
    assert run.events(work / "forked", "write") == [(0, 100), (100, 30), (130, 5)]
    assert run.counts(work / "forked")["bytes_written"] == 135
    assert run.counts(work / "child")["bytes_written"] == 3
    assert sorted((int(row["end_kind"]), int(row["end_code"])) for row in run.job.processes) == [
        (EXIT, 0),
        (EXIT, 5),
    ]


def test_the_child_of_a_fork_counts_files_that_its_parent_has_closed_in_its_own_log(
    trace: Trace, build: Compile, work: Path
) -> None:
    run = trace(build("families.c"), "reopened")
    assert run.status == 0
    rows = run.job.records[run.job.records["opens"] > 0]
    ends = run.job.processes["end_code"][rows["process"]]
    assert sorted(zip(ends.tolist(), rows["opens"].tolist(), strict=True)) == [(0, 4), (5, 2)]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (
            ["env", "-i", "/bin/true"],
            "/bin/true was started in an environment without pario's LD_PRELOAD",
        ),
        (
            [sys.executable, "-c", "import subprocess; subprocess.run(['/bin/true'], env={})"],
            "/bin/true was started in an environment",
        ),
        (["sh", "-c", "true; ./static"], "static was started though it is statically linked"),
        (["sh", "-c", "exec ls"], ""),
    ],
    ids=["exec", "vfork", "static", "seen"],
)
def test_programs_that_cannot_be_followed_are_told(
    trace: Trace, build: Compile, work: Path, command: list[str], told: str
) -> None:
    shutil.copy(build("ends.c", "-static"), work / "static")
    run = trace(*command)
    messages = [message for message in run.job.messages if "was started" in message]
    assert (run.stderr, len(messages)) == ("", 1 if told else 0)
    assert not told or told in messages[0]


def test_a_child_of_what_used_files_before_main_names_its_calls(
    trace: Trace, build: Compile, library: Path, work: Path
) -> None:
    early = build("early.c", "-shared", "-fPIC")
    run = trace(build("families.c"), "forked", env={"LD_PRELOAD": f"{library}:{early}"})
    assert run.status == 0
    assert run.counts(work / "early", "stdio")["opens"] == 1
    assert run.events(work / "forked", "write") == [(0, 100), (100, 30), (130, 5)]


@pytest.mark.parametrize("how", ["wait", "waitpid", "waitid", "wait3", "wait4", "null"])
@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV"])
def test_a_killed_child_is_named_with_its_signal(
    trace: Trace, build: Compile, work: Path, how: str, name: str
) -> None:
    run = trace(build("orphans.c"), how, int(signal.Signals[name]))
    assert run.status == 0
    child = run.stdout.strip()
    (message,) = [text for text in run.job.messages if "killed by" in text]
    assert message.startswith(f"killed by {name}: pid {child} (orphans")
    assert not [text for text in run.job.messages if "no end is known" in text]
    assert run.counts(work / "child")["bytes_written"] == 5


def test_a_worker_that_its_parent_ends_is_not_called_killed(
    trace: Trace, build: Compile, work: Path
) -> None:
    run = trace(build("orphans.c"), "waitpid", int(signal.SIGTERM))
    assert run.status == 0 and run.counts(work / "child")["bytes_written"] == 5
    assert not [text for text in run.job.messages if "killed" in text]


@pytest.mark.system
def test_only_the_first_killed_children_are_noted(trace: Trace, build: Compile) -> None:
    run = trace(build("orphans.c"), "many", int(signal.SIGKILL))
    assert run.status == 0
    (message,) = [text for text in run.job.messages if "killed by SIGKILL" in text]
    assert message.count("(orphans") == 5 and "and 95 more" in message


def test_every_generation_has_a_log(trace: Trace, build: Compile, work: Path) -> None:
    run = trace(build("families.c"), "grandchildren")
    assert run.status == 0
    assert len(run.job.processes) == 4
    assert run.counts(work / "generations")["bytes_written"] == 40


def test_the_child_of_a_vfork_leaves_its_parents_tables_alone(
    trace: Trace, build: Compile, work: Path
) -> None:
    run = trace(build("families.c", "-O2"), "vforked")
    assert run.status == 0
    assert run.events(work / "parent", "write") == [(0, 100), (100, 50)]
    assert (work / "child").read_text() == "hello\n" * 3
    assert run.counts(work / "child", "stdio")["bytes_written"] == 18
    assert run.calls("vfork") == 4


def test_spawned_programs_are_traced(trace: Trace, build: Compile, work: Path) -> None:
    run = trace(build("families.c"), "spawned")
    assert run.status == 0
    assert [(work / name).read_text() for name in ("spawned", "system", "popen")] == [
        "spawned\n",
        "system\n",
        "popen\n",
    ]
    assert run.counts(work / "popen")["bytes_written"] == 6
    assert (run.calls("posix_spawnp"), run.calls("system"), run.calls("popen")) == (2, 1, 1)


def test_a_chain_of_execs_is_one_log_each(trace: Trace, build: Compile, work: Path) -> None:
    run = trace(build("families.c"), "chain")
    assert run.status == 0
    assert sorted(int(row["end_kind"]) for row in run.job.processes) == [EXIT, EXEC, EXEC, EXEC]
    assert run.counts(work / "chain")["bytes_written"] == 40


def test_the_log_of_a_child_that_executes_a_program_needs_little_space(
    trace: Trace, tmp_path: Path
) -> None:
    run = trace("bash", "-c", "/bin/true > none; :")
    assert (run.status, len(run.job.processes)) == (0, 3)
    (child,) = (row for row in run.job.processes if row["parent_image"] == 1)
    assert child["end_kind"] == EXEC
    logs = sorted((tmp_path / "logs1").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    used = [path.stat().st_blocks * 512 for path in logs if f".{child['pid']}." in path.name]
    assert len(used) == 2
    assert max(used) <= 0x40000, "without the space for events of a long run"


def test_threads_lose_nothing_while_others_fork(trace: Trace, build: Compile, work: Path) -> None:
    run = trace(build("families.c"), "threads")
    assert run.status == 0
    assert {run.counts(work / f"thread{i}")["bytes_written"] for i in range(8)} == {7 * 5000}
    assert run.counts(work / "shared")["writes"] == 8 * 5000
    assert (run.counts(work / "again")["opens"], run.counts(work / "again")["closes"]) == (
        1600,
        1600,
    )
    assert run.counts(work / "forked")["bytes_written"] == 40
    assert len(run.job.processes) == 21


@pytest.mark.system
def test_forks_while_another_thread_maps_files_end(trace: Trace, build: Compile) -> None:
    run = trace(build("families.c"), "mapped")
    assert run.status == 0
    assert len(run.job.processes) == 301


def test_handlers_that_write_disturb_nothing(trace: Trace, build: Compile, work: Path) -> None:
    run = trace(build("families.c"), "signals")
    handled = int(run.stdout)
    lost = int(run.job.processes["lost"].sum())
    assert run.status == 0
    assert run.counts(work / "loop")["writes"] == 100000
    assert (work / "handler").stat().st_size == handled
    assert run.counts(work / "handler")["writes"] + lost == handled


def test_a_cancelled_read_unwinds(trace: Trace, build: Compile, work: Path) -> None:
    run = trace(build("families.c"), "cancelled")
    assert run.status == 0
    assert run.counts(work / "afterwards")["bytes_written"] == 9


def test_a_bad_setting_is_said_and_kept_in_the_log(trace: Trace, build: Compile) -> None:
    run = trace(build("ends.c"), "exit", 8, env={"PARIO_TRACE_FILES_LIMIT": "many"})
    assert run.status == 8
    assert "many" in run.stderr
    assert any("many" in message for message in run.job.messages)
    quiet = trace(
        build("ends.c"),
        "exit",
        8,
        env={"PARIO_TRACE_FILES_LIMIT": "many", "PARIO_TRACE_MESSAGES": "no"},
    )
    assert quiet.stderr == ""
