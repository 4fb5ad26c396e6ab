"""docs/findings.md, written from the table of rules: ``python -m pario.see.analyze.rules.document >
docs/findings.md``."""

from __future__ import annotations

import re
import textwrap

from pario.see.analyze.findings import (
    MIN_SECONDS,
    MIN_SHARE,
    RANGE,
    SHORT_MIN_SECONDS,
    SHORT_MIN_SHARE,
)
from pario.see.analyze.reference import DEFAULTS, ENOUGH_BYTES, LARGE_CALL
from pario.see.analyze.rules import RULES
from pario.see.analyze.rules.base import Rule
from pario.see.analyze.rules.repairs import Repair
from pario.see.tables.model import LAYER_NAMES
from pario.wording import block, rate, seconds, share

HEAD = f"""# Findings

<!-- Written by python -m pario.see.analyze.rules.document from the table of rules. -->

A finding is a named cause of lost time in the report of a run; this page explains its
meaning, the estimate of its seconds, and its repair.

    pario report run.pario

Each finding has its evidence, the seconds of wall time that a repair would save, their estimate,
its confidence, and the repair. The report sorts findings by seconds. It leaves out findings of less
than {share(MIN_SHARE)} of the wall time, or of less than {seconds(MIN_SECONDS)}; in a short run it
shows them from {seconds(SHORT_MIN_SECONDS)} on if they are {share(SHORT_MIN_SHARE)} of the time.

## How seconds are counted

- **Cells.** Every second of I/O belongs to one cell: process, file, kind of call. MPI-IO time
  contains the POSIX calls made inside, so these do not count in POSIX cells. Waiting for other
  ranks inside collective MPI-IO calls does not count, either. Terminals, pipes, /proc and devices
  are not storage.
- **The ledger.** A rule claims seconds of cells, in the order of the rules below. A claimed second
  is not available to later rules, so that no two findings contain the same second, and their sum
  never exceeds the wall time. The program's work between calls belongs to the finding that has the
  time of these calls.
- **The critical path.** If the log shows calls in which ranks meet, the path from the end of the
  job back to its start follows the last rank to arrive at every meeting. A claim counts as far as
  the rank's I/O lies on this path: I/O during which a rank would wait for others anyway costs
  nothing, and I/O for which all others wait counts in full. Without such calls the rank with the
  most claimed seconds counts.
- **Waiting.** Collectives are matched by communicator and sequence number, collective MPI-IO calls
  by file, function and running number, blocking messages by sender, receiver, tag and running
  number. Waiting is the time from a rank's arrival to that of the last rank.
- **Ranges.** Seconds that no replay has measured are an estimate. Its range spans a factor of
  {RANGE:g} around it; [predictions.md](predictions.md) counts the gains within.
- **Confidence.** High: the lost seconds were measured. Medium: measured seconds minus a modelled
  cost of the repaired calls. Low: a model of the change.

## Repairs

"Repaired by" below names the settings ([settings.md](settings.md)) with which pario repairs a cause
without a change of the program. `pario advise` writes them, and `pario run --fix` tries them. Risky
settings change which data is lost when the machine fails, or how others see a file while the
program runs: `pario advise` writes them as comments unless you give `--allow`.

No repair multiplies the bytes that are written: buffers write only the bytes that the program
wrote, and pario's MPI-IO does not read the holes between pieces to write them back
(`romio_ds_write = disable`). Buffers read ahead for sequential readers only.

A finding that buffers repair is not shown for files whose calls pario's buffers have served in the
same run.

## Reference rates

The "reference rate" below is the best rate in the same job on the same file system for calls of
{block(LARGE_CALL)} or more (files of {block(ENOUGH_BYTES)} or more per process). If the job has no
such calls, the rates apply that `pario bench --calibrate DIR` measured on this file system and kept
(those of local disks for runs on the same host). Otherwise these cautious defaults apply:

| file system | reading | writing | a small write |
|---|---|---|---|
"""
KINDS = {
    "memory": "tmpfs, ramfs",
    "local": "local disks, and unknown ones",
    "network": "network file systems",
}


def document() -> str:
    """Return the text of the whole page."""
    defaults = "".join(
        f"| {KINDS[kind]} | {rate(speed.read)} | {rate(speed.write)} | {seconds(speed.call)} |\n"
        for kind, speed in DEFAULTS.items()
    )
    return (
        HEAD
        + defaults
        + "\n## The rules, in the order in which they claim\n"
        + "".join(_section(rule) for rule in RULES)
    )


def describe_rule(rule: Rule) -> str:
    """Return the section of a rule without its heading."""
    return _section(rule).partition("\n\n")[2]


def _section(rule: Rule) -> str:
    rows = {
        "Sees": rule.sees,
        "Threshold": rule.threshold,
        "Seconds": rule.estimate,
        "Repair": rule.advice,
        "Repaired by": "\n".join(map(_repair, rule.repairs)),
        f"Why no {'other ' if rule.repairs else ''}setting": f"{rule.why_not}."
        if rule.why_not
        else "",
        "Silent on": rule.control,
    }
    items = (_item(name, text) for name, text in rows.items() if text)
    return f"\n### {rule.name}\n\n" + "".join(items)


def _item(name: str, text: str) -> str:
    """Return an entry of a list; several lines become entries below it."""
    if "\n" in text:
        return f"- **{name}:**\n" + "".join(_wrap_item(line, "  - ") for line in text.splitlines())
    return _wrap_item(f"**{name}:** {text}", "- ")


def _wrap_item(text: str, mark: str) -> str:
    """Return an entry of a list in lines of at most 100 columns; code is not broken."""
    whole = re.sub("`[^`]*`", lambda code: code[0].replace(" ", "\0"), text)
    indent = " " * len(mark)
    wrapper = textwrap.TextWrapper(100, mark, indent, break_on_hyphens=False)
    return "\n".join(wrapper.wrap(whole)).replace("\0", " ") + "\n"


def _repair(repair: Repair) -> str:
    """Return the settings of a repair, its conditions and its effect."""
    settings = ", ".join(
        f"`{table}.{key} = {re.sub('{.*}', '(by the evidence)', value)}`"
        for table, key, value in repair.wanted
    )
    layers = " or ".join(LAYER_NAMES[name] for name in repair.layer.split())
    writers = {0: "no process writes the file", 1: "one process writes the file"}
    needs = f"the files are {repair.needs.replace('_', ' ')}" if repair.needs else ""
    if repair.needs in ("reads", "writes"):
        layers = f"{repair.needs} of {layers}"
        needs = ""
    conditions = [
        f"calls are {layers}" if layers else "",
        writers.get(repair.writers, ""),
        needs,
        "the files have no buffers of pario yet" if repair.buffers else "",
        "the program opens the files" if repair.at_open else "",
    ]
    condition = " and ".join(filter(None, conditions))
    risk = f" (risky: only with `--allow {repair.wanted[0][1]}`)" if repair.risky else ""
    return f"{settings}{f', if {condition}' if condition else ''}: {repair.effect}{risk}."


if __name__ == "__main__":
    print(document(), end="")
