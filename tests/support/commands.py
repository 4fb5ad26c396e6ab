"""Runs programs for tests: one limit, the state of all processes when it is exceeded."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support.processes import add_mark, create_mark, describe_processes, end_processes
from tests.support.waiting import PATIENCE, LateError

#: Characters of each stream that a message shows.
LAST_OUTPUT = 4000
_SECONDS_TO_CLOSE = 10.0


class Command(subprocess.Popen[Any]):
    """A running program that leads a session of its own; it and its descendants carry a mark.

    Takes the options of subprocess.Popen. Streams are text and standard input is empty, unless the
    options say otherwise.
    """

    def __init__(
        self, command: Sequence[object], *, env: Mapping[str, str] | None = None, **options: Any
    ) -> None:
        self.mark = create_mark()
        text = {} if options.get("text") is False else {"text": True, "errors": "replace"}
        group = {} if "process_group" in options else {"start_new_session": True}
        super().__init__(
            [word if isinstance(word, bytes) else str(word) for word in command],
            env=add_mark(os.environ if env is None else env, self.mark),
            **{"stdin": subprocess.DEVNULL} | text | group | options,
        )

    def finish(
        self, input: str | bytes | None = None, *, limit: float = PATIENCE
    ) -> subprocess.CompletedProcess[Any]:
        """Waits for the end of the program and of its output.

        Raises LateError after ``limit`` seconds, with the processes and the last output, and ends
        all processes.
        """
        try:
            output, errors = self.communicate(input, timeout=limit)
        except subprocess.TimeoutExpired as late:
            state = f"--- processes\n{describe_processes(self.pid, self.mark)}"
            said = _show_output(late.output, late.stderr)
            message = f"{self._describe_delay()} within {limit:g} s: {show_command(self)}"
            self.end()
            raise LateError(f"{message}\n{state}\n{said}") from None
        return subprocess.CompletedProcess(self.args, self.returncode, output, errors)

    def wait_for_end(self, *, limit: float = PATIENCE) -> int:
        """Waits only for the end of the program and returns its status; reads no output."""
        try:
            return self.wait(limit)
        except subprocess.TimeoutExpired:
            state = describe_processes(self.pid, self.mark)
            self.end()
            message = f"did not end within {limit:g} s: {show_command(self)}"
            raise LateError(f"{message}\n--- processes\n{state}") from None

    def end(self) -> None:
        """Kills the program and all its descendants, and closes its streams."""
        end_processes(self.mark, self.pid if self.returncode is None else None)
        with suppress(subprocess.TimeoutExpired):
            self.wait(_SECONDS_TO_CLOSE)
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream:
                with suppress(OSError):  # the reader has ended
                    stream.close()

    def _describe_delay(self) -> str:
        if self.poll() is None:
            return "did not end"
        return f"ended with status {self.returncode}, but its output was not closed"


@contextmanager
def start_command(command: Sequence[object], **options: Any) -> Iterator[Command]:
    """Runs a program beside the body of the ``with`` statement, then ends its processes."""
    running = Command(command, **options)
    try:
        yield running
    finally:
        running.end()


def run_command(
    command: Sequence[object],
    *,
    status: int | None = None,
    input: str | bytes | None = None,
    limit: float = PATIENCE,
    end_rest: bool = False,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """Runs a program to its end and returns its status and output.

    Parameters
    ----------
    command
        The program and its arguments; they are converted to text.
    status
        The exit status that the program must have; any if None.
    limit
        Seconds after which the program and all its descendants are ended and the test fails.
    end_rest
        True: descendants that outlive the program are ended, too.
    options
        Those of subprocess.Popen; see Command. Output and errors are captured.

    Raises
    ------
    LateError
        The limit was exceeded. The text holds the processes and the last output.
    AssertionError
        The status is another one. The text holds the command, the status and the last output.
    """
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    if input is not None:
        options["stdin"] = subprocess.PIPE
    running = Command(command, **options)
    try:
        done = running.finish(input, limit=limit)
    except BaseException:
        running.end()
        raise
    if end_rest:
        end_processes(running.mark)
    if status is not None and done.returncode != status:
        message = f"status {done.returncode} instead of {status}: {show_command(running)}"
        raise AssertionError(f"{message}\n{_show_output(done.stdout, done.stderr)}")
    return done


def run_job(
    command: Sequence[object], directory: Path, environment: Mapping[str, str], **options: Any
) -> subprocess.CompletedProcess[Any]:
    """Runs an MPI job in a directory, its errors among its output; ends ranks that outlive it."""
    options = {"stderr": subprocess.STDOUT, "end_rest": True} | options
    return run_command(command, cwd=directory, env=environment, **options)


def show_command(running: subprocess.Popen[Any]) -> str:
    """Returns the command line as a shell would take it, shortened."""
    words = running.args if isinstance(running.args, list) else [running.args]
    line = shlex.join(os.fsdecode(word) for word in words)  # type: ignore[arg-type]
    return line if len(line) <= LAST_OUTPUT else line[:LAST_OUTPUT] + "..."


def _show_output(output: str | bytes | None, errors: str | bytes | None) -> str:
    parts = [f"--- last output\n{_last(output)}"]
    if errors is not None:
        parts.append(f"--- last errors\n{_last(errors)}")
    return "\n".join(parts)


def _last(text: str | bytes | None) -> str:
    if text is None:
        return ""
    return (text.decode(errors="replace") if isinstance(text, bytes) else text)[-LAST_OUTPUT:]
