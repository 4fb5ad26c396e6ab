"""Whether the process of a log, or the launcher of a run, still runs, as far as this host can
tell."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path

from pario.see.tables.own.blocks import ProcessLog

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_DEAD = ("Z", "X", "x")  # states of /proc/PID/stat
_STATE, _START = 0, 19  # fields of /proc/PID/stat after the name
_TOLERANCE = 1.0  # seconds between the start of a process and that of its log, at least


def is_running(log: ProcessLog) -> bool:
    """Tell whether the process runs on this host; False for other hosts and name spaces, and if
    another process has its number now."""
    if log.process["end"] or not _is_here(log):
        return False
    try:
        fields = Path(f"/proc/{log.process['pid']}/stat").read_text(errors="replace")
    except OSError:
        return False
    fields = fields.rpartition(")")[2]
    state, start = fields.split()[_STATE], int(fields.split()[_START])
    begun = start / os.sysconf("SC_CLK_TCK") - _suspended_seconds()
    return state not in _DEAD and begun <= log.process["start_mono_ns"] / 1e9 + _TOLERANCE


def is_launcher_running(description: Path) -> bool:
    """Tell from a run's job.json whether its launcher runs. One on another host counts as running
    until it has written the run's end."""
    try:
        found = json.loads(description.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    launcher = found.get("launcher_pid") if isinstance(found, dict) else None
    if not isinstance(launcher, int) or "exit_status" in found:
        return False
    return found.get("host") != socket.gethostname() or Path(f"/proc/{launcher}").exists()


def _is_here(log: ProcessLog) -> bool:
    note = log.process_note
    try:
        boot = _BOOT_ID.read_text().strip()
    except OSError:
        return False
    return note.get("boot_id") == boot and note.get("host") == socket.gethostname()


def _suspended_seconds() -> float:
    """Return the seconds that CLOCK_MONOTONIC has not counted since the boot."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
