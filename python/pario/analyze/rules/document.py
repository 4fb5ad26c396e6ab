"""docs/findings.md, written from the table of rules: ``python -m pario.analyze.rules.document > docs/findings.md``."""

from __future__ import annotations

import re

from pario.analyze.findings import MIN_SECONDS, MIN_SHARE
from pario.analyze.reference import DEFAULTS, ENOUGH_BYTES, LARGE_CALL
from pario.analyze.rules import RULES
from pario.analyze.rules.base import Rule
from pario.analyze.rules.repairs import Repair
from pario.wording import block, rate, seconds, share

HEAD = f"""# Findings

<!-- Written by python -m pario.analyze.rules.document; change the table of rules, not this file. -->

A finding is one cause of lost time: what happens, the evidence, the seconds of wall time that a repair would give back, how they
were estimated, how sure that is, and what to do. Findings are ranked by seconds; one worth less than {share(MIN_SHARE)} of the
wall time, or less than {seconds(MIN_SECONDS)}, is not shown.

## How seconds are counted

- **Cells.** Every second of I/O stands in one cell: process, file, kind of call. MPI-IO time contains the POSIX calls made
  inside, so these are taken out of the POSIX cells. Waiting for other ranks inside collective MPI-IO calls is taken out, too.
  Terminals, pipes, /proc and devices are not storage.
- **The ledger.** A rule claims seconds of cells. Rules claim in the order below; a second that a stronger cause took is gone, so
  no two findings are about the same second, and their sum never exceeds the wall time.
- **The critical path.** Where the log shows calls in which ranks meet, the path from the end of the job back to its start follows
  the last rank to arrive at every meeting. A claim counts as far as the rank's I/O lies on this path: what a rank does while
  others keep it waiting anyway costs nothing; what all others wait for counts in full. Without such calls the rank with the most
  claimed seconds counts.
- **Waiting.** Collectives are matched by communicator and sequence number, collective MPI-IO calls by file, function and running
  number, blocking messages by sender, receiver, tag and running number. Waiting is the time from a rank's arrival to that of the
  last one.
- **Confidence.** High: the lost seconds were measured. Medium: measured seconds minus a modelled cost of the repaired calls. Low:
  a model of what would change.

## Repairs

"Repaired by" below is what pario does about a cause with the program as it is: settings ([settings.md](settings.md)) that `pario advise`
writes and `pario run --fix` tries. Risky ones are written as comments unless `--allow` is given: they change what is lost when the machine
fails, or what others see of a file meanwhile.

## Reference rates

"Reference rate" below is the best rate seen in the same job on the same file system for calls of {block(LARGE_CALL)} or more
(files of {block(ENOUGH_BYTES)} or more per process). Where the job shows none, these defaults stand in, on purpose cautious:

| file system | reading | writing | a small write |
|---|---|---|---|
"""
LAYER_NAMES = {"mpiio": "MPI-IO", "posix": "POSIX", "stdio": "stdio"}
KINDS = {"memory": "tmpfs, ramfs", "local": "local disks, and where the log does not say", "network": "network file systems"}


def document() -> str:
    """The whole text."""
    defaults = "".join(
        f"| {KINDS[kind]} | {rate(speed.read)} | {rate(speed.write)} | {seconds(speed.call)} |\n" for kind, speed in DEFAULTS.items()
    )
    return HEAD + defaults + "\n## The rules, in the order in which they claim\n" + "".join(_section(rule) for rule in RULES)


def _section(rule: Rule) -> str:
    program = "Otherwise a change of the program" if rule.repairs else "Repaired by a change of the program alone"
    rows = {
        "Sees": rule.sees,
        "Threshold": rule.threshold,
        "Seconds": rule.estimate,
        "What to do": rule.advice,
        "Repaired by": "; ".join(map(_repair, rule.repairs)),
        f"{program}, because": rule.why_not,
        "Silent on": rule.control,
    }
    return f"\n### {rule.name}\n\n" + "".join(f"- **{name}:** {text}\n" for name, text in rows.items() if text)


def _repair(repair: Repair) -> str:
    """Settings and effect of a repair, and where it acts."""
    settings = ", ".join(f"`{table}.{key} = {re.sub('{.*}', '(by the evidence)', value)}`" for table, key, value in repair.wanted)
    files = {0: " and nobody writes the file", 1: " and one process writes the file"}.get(repair.writers, "")
    files += f" and the files are {repair.needs}" if repair.needs else ""
    where = f", where calls are {' or '.join(LAYER_NAMES[name] for name in repair.layer.split())}" if repair.layer else ""
    return f"{settings}{where}{files}: {repair.effect}" + (f" (risky: only with `--allow {repair.wanted[0][1]}`)" if repair.risky else "")


if __name__ == "__main__":
    print(document(), end="")
