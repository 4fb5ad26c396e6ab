"""A choice: settings that are applied together."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pario.fix.stripe.commands import short, size_of
from pario.settings import Line, Proposal, SettingsFile, load, write

#: The sizes that may grow, with their upper limits in bytes.
_GROWING = {
    ("streams", "size"): 64 << 20,
    ("stdio", "size"): 64 << 20,
    ("mpiio", "pario_write_behind"): 256 << 20,
    ("mpiio", "pario_merge_collectives"): 256 << 20,
    ("mpiio", "cb_buffer_size"): 64 << 20,
    ("mpiio", "ind_wr_buffer_size"): 64 << 20,
}
_TIMES = 4

#: The settings of one pattern ("": of the run): (table, key) and the value.
Keys = Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class Choice:
    """Settings by pattern; two with the same meaning are equal."""

    sections: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = ()

    @staticmethod
    def of(match: str, *settings: tuple[str, str, str]) -> Choice:
        """A choice of settings (table, key, value) for the files of a pattern."""
        return Choice(((match, settings),))

    @staticmethod
    def of_proposals(proposals: Iterable[Proposal]) -> Choice:
        """A choice of the applied lines of proposals."""
        made = Choice()
        for proposal in proposals:
            lines = tuple(
                (line.table, line.key, line.value) for line in proposal.lines if line.applied
            )
            made = made.with_(Choice.of(proposal.match, *lines)) if lines else made
        return made

    def with_(self, other: Choice) -> Choice:
        """Both choices together; the settings of the other one win."""
        keys: dict[str, dict[tuple[str, str], str]] = {}
        for match, settings in (*self.sections, *other.sections):
            keys.setdefault(match, {}).update(
                {(table, key): value for table, key, value in settings}
            )
        ordered = sorted(keys.items(), key=lambda item: item[0] != "")  # [run] first
        return Choice(
            tuple(
                (match, tuple(sorted((*key, value) for key, value in of.items())))
                for match, of in ordered
            )
        )

    def without(self, other: Choice) -> Choice:
        """This choice without the settings that the other one has, too."""
        theirs = {(match, one) for match, settings in other.sections for one in settings}
        left = (
            (match, tuple(one for one in settings if (match, one) not in theirs))
            for match, settings in self.sections
        )
        return Choice(tuple((match, settings) for match, settings in left if settings))

    def larger(self) -> Choice:
        """The same choice with sizes four times as large, up to their limits."""
        return Choice(
            tuple(
                (
                    match,
                    tuple((table, key, _grow_size(table, key, value)) for table, key, value in of),
                )
                for match, of in self.sections
            )
        )

    @property
    def keys(self) -> set[tuple[str, str]]:
        """The tables and keys of its settings."""
        return {(table, key) for _, settings in self.sections for table, key, _ in settings}

    def proposals(self, reasons: tuple[str, ...] = ()) -> list[Proposal]:
        """The proposals for a settings file."""
        return [
            Proposal(
                match,
                tuple(Line(table, key, value) for table, key, value in settings),
                reasons if place == 0 else (),
            )
            for place, (match, settings) in enumerate(self.sections)
        ]

    def text(self) -> str:
        """A description in one line, for the user."""
        return "; ".join(
            f"{match or 'run'}: {', '.join(f'{key}={value}' for _, key, value in of)}"
            for match, of in self.sections
        )

    def settings(self) -> SettingsFile | None:
        """The settings for a program; None if there are none."""
        if not self.sections:
            return None
        with tempfile.TemporaryDirectory(prefix="pario-tune-") as place:
            path = Path(place) / "pario.toml"
            path.write_text(write((), self.proposals()), encoding="utf-8")
            return load(path)


def _grow_size(table: str, key: str, value: str) -> str:
    """Return a larger value for a size below its limit; any other value unchanged."""
    most = _GROWING.get((table, key), 0)
    size = size_of(value) if most else 0
    return short(min(_TIMES * size, most)) if 0 < size < most else value


#: Turns pario's MPI-IO on.
MPIIO_ON = Choice.of("", ("run", "mpiio", "yes"))
