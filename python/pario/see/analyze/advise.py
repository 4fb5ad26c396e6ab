"""From findings to a settings file: the repairs that need no change of the program, each setting
with its evidence and seconds."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from pario import wording
from pario.see.analyze.model import Analysis, FileSetting, Finding
from pario.settings.globs import literal, selects
from pario.settings.write import Line, Proposal, write

#: The tables in PARIO_STREAMS, the longest value of that variable (src/core/hints/hints.def), and
#: the most characters of a specification beside its pattern and settings.
STREAMS, MOST_CHARACTERS, SLACK = ("streams", "stdio"), 1023, 16
NO_SPACE = (
    "There is no space for more patterns: join some by hand (* matches any characters) to include"
    " this one."
)
#: The end of the reason against settings that replays found faster, but not as fast as others.
OUTDONE = "slower than the chosen settings"
NOT_FASTER = "an earlier run with the setting was not faster"
#: That of a finding some of whose rejected settings replays chose all the same.
NOT_FASTER_TOGETHER = "with all settings of this finding an earlier run was not faster"
#: In place of a risky key: allows all of them.
EVERY = "all"
SURE = {"high": "sure", "medium": "likely", "low": "possible"}


#: Parts of paths that the next run does not repeat: the random ones of Python's tempfile and of
#: mktemp(1), after "tmp", and bytes that are not UTF-8, which logs show as ``\xNN``.
_CHANGING = re.compile(
    r"(?<=/tmp)[a-z0-9][a-z0-9_]{7}(?![A-Za-z0-9_])"
    r"|(?<=/tmp\.)[A-Za-z0-9]{10}(?![A-Za-z0-9_])"
    r"|(?:\\x[0-9a-f]{2})+"
)


@dataclass(frozen=True)
class Advice:
    """The proposed settings, and the findings by repair."""

    proposals: tuple[Proposal, ...]
    repaired: tuple[Finding, ...]  # findings with applied settings
    held_back: tuple[Finding, ...]  # findings with proposed settings only
    left: tuple[Finding, ...]  # findings that pario cannot repair
    allowed: frozenset[str] = frozenset()  # keys of risky settings

    @property
    def acts(self) -> bool:
        """True if a setting is applied."""
        return any(line.applied for proposal in self.proposals for line in proposal.lines)


@dataclass
class _Section:
    """Settings of one pattern while findings are visited: the finding with most seconds wins."""

    lines: dict[tuple[str, str], Line] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)


def applies(setting: FileSetting, allowed: Collection[str]) -> bool:
    """Tell whether a setting is applied: it is not risky, or the user allows its key."""
    return not setting.risky or EVERY in allowed or setting.key in allowed


def advise(analysis: Analysis, allowed: Collection[str] = ()) -> Advice:
    """Propose settings for the findings, most seconds first. A risky setting is applied only if
    the user allows its key."""
    sections: dict[str, _Section] = {}
    for finding in analysis.findings:
        for match, setting in list_settings(analysis, finding):
            section = sections.setdefault(match, _Section())
            applied = applies(setting, allowed)
            line = Line(setting.table, setting.key, setting.value, applied)
            section.lines.setdefault((setting.table, setting.key), line)
            reason = _reason(finding, setting, analysis.job.wall, applied=applied)
            section.reasons += [reason] if reason not in section.reasons else []
    ordered = sorted(sections.items(), key=lambda item: item[0] != "")  # [run] first
    proposals = [
        Proposal(match, tuple(section.lines.values()), tuple(section.reasons))
        for match, section in ordered
    ]
    return Advice(
        tuple(_limit_lengths(proposals)),
        *_sort_findings(analysis.findings, allowed),
        frozenset(allowed),
    )


def without_settings(
    analysis: Analysis, rejected: Collection[tuple[str, str, str]]
) -> tuple[Analysis, tuple[str, ...]]:
    """Return the analysis without some settings (table, key, value) of its findings, and the names
    of the settings that it had."""
    names: dict[str, None] = {}

    def reduce(finding: Finding) -> Finding:
        kept = tuple(one for one in finding.settings if _words(one) not in rejected)
        if len(kept) == len(finding.settings):
            return finding
        gone = (one for one in finding.settings if one not in kept)
        names.update({name_setting(_words(one)): None for one in gone})
        return replace(finding, settings=kept, why_not="" if kept else NOT_FASTER)

    findings = tuple(map(reduce, analysis.findings))
    return replace(analysis, findings=findings), tuple(names)


def _words(setting: FileSetting) -> tuple[str, str, str]:
    return setting.table, setting.key, setting.value


def render(analysis: Analysis, advice: Advice, measured: Sequence[str] = ()) -> str:
    """Return the text of the settings file. ``measured``: lines on the replays that measured the
    settings."""
    job = analysis.job
    head = [
        (
            f"Written by pario advise from {job.source}: {job.command}"
            if job.command
            else f"Written by pario advise from {job.source}"
        )
    ]
    head.append(
        f"The run took {wording.seconds(job.wall)}. Seconds below are those that a setting may give"
        " back."
    )
    head += measured
    head += [
        f"{_cost(finding, job.wall)}: {finding.title}. {' '.join(explain_unrepaired(finding))}"
        for finding in advice.left
    ]
    if not advice.proposals:
        head.append("There is nothing to set.")
    return write(head, advice.proposals)


def name_setting(setting: tuple[str, str, str]) -> str:
    """Return table, key and value as a settings file writes them."""
    table, key, value = setting
    return f"{table}.{key} = {value}"


def mark_served(
    analysis: Analysis, advice: Advice, rejected: Collection[tuple[str, str, str]]
) -> tuple[Advice, tuple[str, ...]]:
    """Return the advice whose findings name settings of theirs that replays chose, although an
    earlier run rejected them, and these settings. ``analysis``: with the rejected settings."""
    lines = (line for proposal in advice.proposals for line in proposal.lines if line.applied)
    chosen = {(line.table, line.key, line.value) for line in lines} & set(rejected)
    served = {
        finding.title
        for finding in analysis.findings
        if chosen & {_words(setting) for setting in finding.settings}
    }
    left = tuple(
        replace(finding, why_not=NOT_FASTER_TOGETHER)
        if finding.title in served and finding.why_not == NOT_FASTER
        else finding
        for finding in advice.left
    )
    return replace(advice, left=left), tuple(map(name_setting, sorted(chosen)))


def is_served(finding: Finding) -> bool:
    """Tell whether the chosen settings, which are not those of a finding, serve it, too."""
    return finding.why_not.endswith((OUTDONE, NOT_FASTER_TOGETHER))


def explain_unrepaired(finding: Finding) -> tuple[str, ...]:
    """Return sentences on a finding without settings: the change to make, and why no setting
    makes it."""
    what = next((fix.text for fix in finding.fixes if fix.kind == "code"), "")
    if not finding.why_not:
        return (f"No setting repairs it. {what}".rstrip(),)
    if is_served(finding):
        return (f"The chosen settings serve these calls, too: {finding.why_not}.",)
    return (f"Needs a change of the program: {what}", f"No setting does it: {finding.why_not}.")


def _limit_lengths(proposals: Iterable[Proposal]) -> Iterator[Proposal]:
    """Turn the sections of streams that would make their variable too long into comments."""
    used = 0
    for proposal in proposals:
        length = sum(
            len(f":{line.key}={line.value}")
            for line in proposal.lines
            if line.table in STREAMS and line.applied
        )
        used += len(proposal.match) + length + SLACK if length else 0
        if not length or used <= MOST_CHARACTERS:
            yield proposal
            continue
        lines = (
            replace(line, applied=line.applied and line.table not in STREAMS)
            for line in proposal.lines
        )
        yield replace(proposal, lines=tuple(lines), reasons=(*proposal.reasons, NO_SPACE))


def list_settings(analysis: Analysis, finding: Finding) -> Iterator[tuple[str, FileSetting]]:
    """Yield pattern and setting of a finding; a setting of the whole run has no pattern."""
    # Other files that several ranks write, which no pattern may select by chance.
    shared = [
        row.path
        for row in analysis.files
        if row.ranks > 1 and row.writes and row.path not in finding.files
    ]
    matches = patterns(finding.files, finding.file_count, shared)
    for setting in finding.settings:
        for match in ("",) if setting.table == "run" else matches:
            yield match, setting


def patterns(paths: Sequence[str], count: int, shared: Sequence[str] = ()) -> tuple[str, ...]:
    """Return patterns for files. Files whose names differ only in numbers share a pattern
    (``/out/step-*.dat``), and names of temporary files, which the next run does not repeat, have
    one (``/tmp/tmp*``), unless it selects a ``shared`` file.
    """
    if count <= 1:
        return tuple(map(_single, paths))
    joint = {path: _joint(path, paths) for path in paths}
    return tuple(
        dict.fromkeys(
            _single(path) if any(selects(joint[path], other) for other in shared) else joint[path]
            for path in paths
        )
    )


def _joint(path: str, paths: Sequence[str]) -> str:
    """Replace numbers in the last part of a path by ``*`` where the paths that differ from it only
    in numbers have other ones."""
    folder, slash, name = path.rpartition("/")
    if name == "*" or _CHANGING.search(slash + name):
        return _single(path)
    alike = [numbers for other in paths if (numbers := _numbers(other))[0] == _numbers(path)[0]]
    texts, own = re.split(r"\d+", name), _numbers(path)[1]
    marks = [
        number if all(other[place] == number for _, other in alike) else "*"
        for place, number in enumerate(own)
    ]
    joined = literal(texts[0]) + "".join(
        mark + literal(text) for mark, text in zip(marks, texts[1:], strict=True)
    )
    return _lasting(folder) + slash + joined


def _numbers(path: str) -> tuple[str, list[str]]:
    """Split a path into its text without the numbers of the last part, and these numbers."""
    folder, slash, name = path.rpartition("/")
    return folder + slash + re.sub(r"\d+", "#", name), re.findall(r"\d+", name)


def _single(path: str) -> str:
    return _lasting(path.removesuffix("*")) + "*" if path.endswith("/*") else _lasting(path)


def _lasting(path: str) -> str:
    """Return a pattern for a path, and for the names that other runs give this file."""
    kept = _CHANGING.split(path)
    return "*".join(map(literal, kept))


def _reason(finding: Finding, setting: FileSetting, wall: float, *, applied: bool) -> str:
    """Return a sentence on a setting. Of one that is not applied no replay has measured the gain:
    a change of the program would save the seconds of its finding."""
    worth = f"{_cost(finding, wall)}, {SURE[finding.confidence]}"
    head = f"{worth if applied else f'At most {_cost(finding, wall)}'}: {finding.title}"
    if setting.table == "run":
        return f"{head}."
    evidence = f" ({finding.evidence[0].text})" if finding.evidence else ""
    risk = f" Risky: --allow {setting.key} if that does not matter" if setting.risky else ""
    risk += "." if risk and applied else "; it is then measured." if risk else ""
    return f"{head}{evidence}. {setting.effect[:1].upper()}{setting.effect[1:]}.{risk}"


def _cost(finding: Finding, wall: float) -> str:
    return f"{wording.seconds(finding.seconds)} ({wording.percent(finding.seconds, wall)})"


def _sort_findings(
    findings: Iterable[Finding], allowed: Collection[str]
) -> tuple[tuple[Finding, ...], tuple[Finding, ...], tuple[Finding, ...]]:
    """Sort findings into those with applied settings, with proposed settings only, and without
    settings."""
    repaired: list[Finding] = []
    held_back: list[Finding] = []
    left: list[Finding] = []
    for finding in findings:
        applied = any(applies(setting, allowed) for setting in finding.settings)
        (repaired if applied else held_back if finding.settings else left).append(finding)
    return tuple(repaired), tuple(held_back), tuple(left)
