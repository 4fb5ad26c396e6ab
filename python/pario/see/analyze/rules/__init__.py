"""The table of rules, in the order in which they claim seconds: the more specific cause first."""

from pario.see.analyze.rules import (
    access,
    bursts,
    collective,
    hints,
    loading,
    metadata,
    sharing,
    small_calls,
    targets,
    text,
)
from pario.see.analyze.rules.base import Rule

RULES: tuple[Rule, ...] = (
    targets.SLOW,
    loading.NO_WORKERS,
    collective.HOLES,
    collective.MISSING,
    *metadata.STORMS,
    sharing.ALL_READ_ONE,
    access.EMPTY,
    access.SEEKS,
    access.REREAD,
    *text.RULES,
    *small_calls.RULES,
    sharing.ONE_RANK,
    targets.ONE_STRIPE,
    targets.UNALIGNED,
    hints.NOT_EFFECTIVE,
    collective.EXCHANGE,
    collective.LATE,
    metadata.QUEUE,
    access.FAULTS,
    sharing.STRAGGLER,
    bursts.BURSTS,
)
