"""Call sites: the lines of the program behind a finding, and the stacks of all I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pario import _native, wording
from pario.see.analyze import libraries
from pario.see.analyze.arrays import Floats, Ints, Mask, Table, sums
from pario.see.analyze.cells import KIND_OF_EVENTS, find_rows
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import COMPUTE, Claim
from pario.see.analyze.model import MOST_ROWS, CallSite, Evidence, StackRow
from pario.see.analyze.waiting import COMMUNICATION
from pario.see.tables.model import EVENT_KINDS, Frame

#: Call sites of a finding.
MOST_SITES = 20
#: The least part of the calls of a finding whose stacks must be known to name its lines.
ENOUGH_KNOWN = 0.5
#: The part of the calls without a file in the log above which a line stands for them all.
MAJORITY = 0.5
#: Up to so many lines are named together where none stands out and they make nearly all calls.
TOGETHER, STANDS_OUT, NEARLY_ALL = 3, 2 / 3, 0.9
#: The counters of the calls of each kind of event: those that have succeeded, and others.
_COUNTERS = {
    kind: (calls, "failed_opens") if kind == "open" else (calls,)
    for kind, calls, _ in _native.op_table()
    if kind != "entry"  # entries are counted, not calls
}
#: The function of a kind of event whose calls have no counter: ``maps`` counts mmap alone.
_UNCOUNTED = "munmap"
#: The end of a place in an installed program.
NO_LINES = "(it has no line information)"


@dataclass(frozen=True)
class Places:
    """The places that make some calls, and the number of these calls with and without a place."""

    sites: tuple[CallSite, ...] = ()
    calls: int = 0
    without: int = 0

    @property
    def named(self) -> tuple[CallSite, ...]:
        """The places that stand for the calls: none if most calls have no known place."""
        enough = self.calls - self.without >= ENOUGH_KNOWN * self.calls
        return self.sites if enough else ()

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """A sentence on the calls without a place if there are too many of them."""
        if self.named or not self.without:
            return ()
        lost, all_calls = wording.count(self.without), wording.count(self.calls)
        text = f"no line is named: the call stacks of {lost} of these {all_calls} calls were lost"
        return (Evidence(text, values={"lost": self.without / self.calls}),)


class CallSites:
    """The call sites of a job; empty without such rows in its log."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._sites = facts.job.sites

    @cached_property
    def _record(self) -> Ints:
        """The row of the record of each site, -1 for none."""
        sites = self._sites
        return find_rows(self._facts.records, sites["process"], sites["file"], sites["layer"])

    def of_claims(self, claims: Iterable[Claim], *, by_calls: bool = False) -> Places:
        """Return the places that make the calls of claims, most seconds (or calls) first."""
        if not len(self._sites):
            return Places()
        known, folded = np.zeros((2, len(self._sites)), bool)
        calls, seconds = 0, 0.0
        for claim in claims:
            of_files, of_others = self._of_claim(claim)
            known |= of_files
            folded |= of_others
            if (of_files | of_others).any():
                rows = claim.rows[claim.seconds > 0]
                calls += self._count_calls(rows, _events_of(claim.kind))
                seconds += (
                    0.0 if claim.kind < 0 else float(self._facts.cells[rows, claim.kind].sum())
                )
        return self._places_of(known, folded, calls, 0.0 if by_calls else seconds)

    def of_functions(self, names: Iterable[str], processes: Iterable[int]) -> Places:
        """Return the places in processes that call functions, most seconds first."""
        if not len(self._sites):
            return Places()
        chosen = self._facts.job.select_functions(set(names).__contains__)
        own = np.isin(self._sites["process"], np.array(list(processes), np.int64))
        return self._places(np.asarray(chosen[self._sites["name"]] & own))

    def busiest_place(self, kinds: Iterable[str], files: Mask) -> str:
        """Return the place that makes most calls of ``kinds`` on ``files``, a mask of
        ``Job.files``; empty if it is not known."""
        if not len(self._sites):
            return ""
        events = [EVENT_KINDS.index(kind) for kind in kinds]
        wanted = np.isin(self._sites["kind"], events)
        own = np.append(files, False)[self._sites["file"]]
        rows = np.flatnonzero(np.append(files, False)[self._facts.records["file"]])
        calls = self._count_calls(rows, events)
        folded = wanted & (self._sites["file"] < 0)
        places = self._places_of(np.asarray(wanted & own), folded, calls).named
        return join_places(places, by_calls=True)[0]

    def place_of_call(self, event: np.void) -> str:
        """Return the places from which the process of an event makes such calls on its file: a
        line, or several that make nearly all of them; empty if they are not known."""
        sites = self._sites
        if not len(sites):
            return ""
        same = np.ones(len(sites), bool)
        for ours, its in (("process", "process"), ("file", "file"), ("name", "function")):
            same &= sites[ours] == event[its]
        return join_places(self._places(same, by_calls=True).named, by_calls=True)[0]

    def count_below(self, source: str, names: Iterable[str]) -> Floats:
        """Return, per row of ``Job.processes``, the calls of functions that a file of Python makes;
        ``source``: the end of its path."""
        job = self._facts.job
        stacks = [any(frame.file.endswith(source) for frame in one) for one in job.stacks]
        chosen = job.select_functions(set(names).__contains__)
        sites = self._sites[chosen[self._sites["name"]]]
        own = sites[np.array([*stacks, False])[sites["stack"]]]
        return sums(own["process"], own["calls"], len(job.processes))

    def _count_calls(self, rows: Ints, events: Iterable[int]) -> int:
        """Return the calls of kinds of events in rows of records, as far as they are counted."""
        counters = (name for kind in events for name in _COUNTERS.get(EVENT_KINDS[kind], ()))
        return sum(int(self._facts.records[name][rows].sum()) for name in counters)

    @cached_property
    def _compared(self) -> Ints:
        """The calls of each site that the counters of records count."""
        kinds = [n for n, kind in enumerate(EVENT_KINDS) if kind in _COUNTERS]
        names = self._facts.job.function_names
        counted = np.array([name != _UNCOUNTED for name in names], bool)[self._sites["name"]]
        compared = np.isin(self._sites["kind"], kinds) & counted
        return np.asarray(np.where(compared, self._sites["calls"], 0))

    def _places_of(self, known: Mask, folded: Mask, calls: int, seconds: float = 0.0) -> Places:
        """Return the places of ``calls`` calls on files, sorted by their time if ``seconds`` is
        the time of the calls: of the sites of these files if they have enough of the calls,
        otherwise also of sites without a file. If many of these belong to other files, only a
        place that makes most of all calls is returned."""
        by_calls = not seconds
        of_files = int(self._compared[known].sum())
        if known.any() and of_files >= ENOUGH_KNOWN * calls:
            return self._places(known, by_calls=by_calls)
        both = np.asarray(known | folded)
        places = self._places(both, by_calls=by_calls)
        all_seconds = float(self._sites["seconds"][both].sum())
        if calls >= NEARLY_ALL * int(self._compared[both].sum()) > 0:
            return places
        if seconds >= NEARLY_ALL * all_seconds > 0:
            return places
        return replace(places, sites=tuple(one for one in places.sites if one.share > MAJORITY))

    def _of_claim(self, claim: Claim) -> tuple[Mask, Mask]:
        """Return the sites of the files of a claim, and those of files that have no rows in the
        log, among which its files may be."""
        sites = self._sites
        none = np.zeros(len(sites), bool)
        communicates = sites["layer"] == COMMUNICATION
        if claim.kind == COMPUTE:
            return none, none
        rows = claim.rows[claim.seconds > 0]
        if claim.kind < 0:
            lanes = self._facts.lanes.of(sites["process"])
            return np.asarray(communicates & np.isin(lanes, rows)), none
        alike = ~communicates & (KIND_OF_EVENTS[sites["kind"]] == claim.kind)
        known = np.isin(self._record, rows) & (self._record >= 0)
        processes = self._facts.records["process"][rows]
        folded = (sites["file"] < 0) & np.isin(sites["process"], processes)
        return np.asarray(known & alike), np.asarray(folded & alike)

    def _places(self, mask: Mask, *, by_calls: bool = False) -> Places:
        """Sum the sites of a mask by place, and sort them by seconds or calls."""
        sites = _sums(self._sites[mask], "stack")
        total = max(int(sites["calls"].sum()), 1)
        groups: dict[tuple[str, str, int], list[int]] = defaultdict(list)
        for number, stack in enumerate(sites["stack"].tolist()):
            groups[self._place(stack)].append(number)
        unknown = groups.pop(("", "", 0), [])
        found = []
        for (text, file, line), numbers in groups.items():
            rows = sites[numbers]
            worst = int(rows["stack"][int(np.argmax(rows["seconds"]))])
            calls = int(rows["calls"].sum())
            found.append(
                CallSite(
                    place=text,
                    file=file,
                    line=line,
                    calls=calls,
                    share=calls / total,
                    seconds=float(rows["seconds"].sum()),
                    bytes=int(rows["bytes"].sum()),
                    callers=self._callers(worst),
                )
            )
        found.sort(key=lambda site: -(site.calls if by_calls else site.seconds))
        without = int(sites["calls"][unknown].sum())
        return Places(tuple(found[:MOST_SITES]), int(sites["calls"].sum()), without)

    def _place(self, stack: int) -> tuple[str, str, int]:
        """Return the text, file and line of the call site of a stack; empty if it has none."""
        frames = self._facts.job.stacks[stack] if stack >= 0 else ()
        depth = libraries.user_depth(frames)
        if depth < 0:
            return "", "", 0
        frame = frames[depth]
        return describe(frame), frame.file, frame.line

    def _callers(self, stack: int) -> tuple[str, ...]:
        frames = self._facts.job.stacks[stack]
        outer = frames[libraries.user_depth(frames) + 1 :]
        return tuple(describe(frame) for frame in outer if libraries.is_user_code(frame))

    def stacks(self) -> tuple[StackRow, ...]:
        """Return the stacks of the I/O on storage, outermost frame first, most seconds first. Calls
        inside other traced calls are left out: their seconds are in those."""
        job, sites = self._facts.job, self._sites
        known = self._facts.stored | self._facts.library
        stored = np.append(known, False)[self._record] | (sites["file"] < 0)
        its = _sums(sites[stored & (sites["layer"] != COMMUNICATION)], "stack", "name")
        sums: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
        for site in its:
            stack = job.stacks[site["stack"]] if site["stack"] >= 0 else ()
            if _is_nested(stack):
                continue
            total = sums[(*_path(stack), job.function_names[site["name"]])]
            total[0] += float(site["seconds"])
            total[1] += float(site["calls"])
        rows = [StackRow(key, value[0], int(value[1])) for key, value in sums.items()]
        return tuple(sorted(rows, key=lambda row: -row.seconds)[:MOST_ROWS])


def _events_of(kind: int) -> Iterable[int]:
    """Return the kinds of events whose seconds are of a kind of time."""
    return np.flatnonzero(np.equal(KIND_OF_EVENTS, kind)).tolist()


def join_places(sites: Sequence[CallSite], *, by_calls: bool = False) -> tuple[str, str]:
    """Return the first place, and its part of the calls or of their time in words: ``load.py:12``
    and ``80 % of these calls``. Several places where none stands out and they together make nearly
    all calls: ``lines 12 and 15 of load.py``. Without a place empty texts."""
    if not sites:
        return "", ""
    calls = [site.share for site in sites]
    total = sum(site.seconds for site in sites)
    time = [site.seconds / total if total > 0 else 0.0 for site in sites]
    parts = (calls,) if by_calls else (calls, time)
    words = ("of these calls", "of the time of these calls")
    for part, what in zip(parts, words, strict=False):
        if part[0] > STANDS_OUT:
            return sites[0].place, f"{wording.share(part[0])} {what}"
    for part, what in zip(parts, words, strict=False):
        for number in range(2, min(TOGETHER, len(sites)) + 1):
            share = sum(part[:number])
            if share >= NEARLY_ALL:
                return _list_places(sites[:number]), f"{wording.share(min(share, 1.0))} {what}"
    leads = len(parts) - 1 if parts[-1][0] == max(parts[-1]) else 0
    most = f"{wording.share(parts[leads][0])} {words[leads]}"
    return sites[0].place, f"{most}, the most of any line" if len(sites) > 1 else most


def _list_places(sites: Sequence[CallSite]) -> str:
    lines = sorted({site.line for site in sites if site.line})
    in_one = len({site.file for site in sites}) == 1 and len(lines) == len(sites)
    texts = [str(line) for line in lines] if in_one else [site.place for site in sites]
    listed = f"{', '.join(texts[:-1])} and {texts[-1]}"
    return f"lines {listed} of {sites[0].file.rpartition('/')[2]}" if in_one else listed


def _sums(sites: Table, *keys: str) -> Table:
    """Return one row for the rows with equal keys, with their sums; other columns are those of one
    of them."""
    _, first, place = np.unique(sites[[*keys]], return_index=True, return_inverse=True)
    summed = sites[first].copy()
    for name in ("calls", "seconds", "bytes"):
        total = np.bincount(place.ravel(), sites[name], len(first))
        summed[name] = total.astype(sites.dtype[name])
    return summed


def describe(frame: Frame) -> str:
    """Return a place: ``solver.c:118 in write_halo``. Without debug information:
    ``write_halo+0x1c in solver``; of a program of the system, ``lmp (it has no line
    information)``; of a script of Perl or similar, its name."""
    module = (frame.module or frame.file).rpartition("/")[2]
    if frame.file and frame.line:
        function = f" in {frame.function}" if frame.function not in ("", "<module>") else ""
        return f"{frame.file.rpartition('/')[2]}:{frame.line}{function}"
    if frame.file and not (frame.module or frame.function):
        return module
    if libraries.is_installed_program(frame.module):
        return f"{module} {NO_LINES}"
    if frame.function:
        offset = f"+{frame.offset:#x}" if frame.offset >= 0 else ""
        return f"{frame.function}{offset} in {module}"
    return f"{frame.address:#x} in {module or 'code without a file'}"


def _is_nested(stack: Sequence[Frame]) -> bool:
    """Tell whether a traced call made this one: pario's own frames are in the stack."""
    return any(libraries.is_own(frame) for frame in stack)


def _path(stack: Sequence[Frame]) -> tuple[str, ...]:
    """Return the frames of a flame graph, outermost first, from the first frame of user code."""
    outwards = list(reversed(stack))
    first = next((i for i, frame in enumerate(outwards) if libraries.is_user_code(frame)), 0)
    return tuple(describe(frame) for frame in outwards[first:])
