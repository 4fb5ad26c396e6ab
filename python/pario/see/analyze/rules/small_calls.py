"""Rules about calls that move few bytes, so that the fixed cost of a call dominates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from pario import wording
from pario.see.analyze import idioms
from pario.see.analyze.arrays import Floats, Ints, Mask, sums
from pario.see.analyze.cells import READ, READS, WRITE, WRITES, Direction, events_of_rows
from pario.see.analyze.facts import Facts
from pario.see.analyze.folded import files_of_rows
from pario.see.analyze.ledger import Claim
from pario.see.analyze.libraries import is_installed_program
from pario.see.analyze.model import Fix
from pario.see.analyze.rules import databases, repairs
from pario.see.analyze.rules.base import (
    Candidate,
    Rule,
    Scene,
    code,
    fact,
    scene,
    sum_seconds,
)
from pario.see.analyze.rules.calling import Work, claim_work
from pario.see.analyze.rules.repairs import figures_of_copy
from pario.see.analyze.rules.requests import LEAST_SIZE, find_asynchronous, find_deep_queues

SMALL_CALL = 16 * 1024
MANY_CALLS = 500
VALUE = 64
LOCKED = 0.5  # locks set or released for each call: the bytes between them are few
NUMBER_TEXT = 2  # bytes of the shortest number in text
NUMBER, ALIGNED = 8, 4  # bytes of a number; those of records are a multiple
ONE_SIZE = 0.9  # of the calls for the records of an array; lines of text differ in size
MANY_VALUES = 20_000
NAMED_STALLS = 0.1  # of the time of the calls
SEQUENTIAL = 0.9
CALL_SECONDS = 5e-6  # a system call, on a slow processor
DEVICE_SECONDS = 30e-6  # the usual read of a device; caches are faster
BACKWARD = 0.25  # of reads at random places, half begin before the last one
_IN_MEMORY = "Read the file once, or map it (mmap, np.memmap), and copy the records from memory."
_IN_ORDER = "Sort the records by their places, and read neighbours with one call."
_SEVERAL = (
    "Ask for several records at a time: threads, io_uring, or posix_fadvise(POSIX_FADV_WILLNEED)"
    " for the next ones."
)
#: Programs of the system whose blocks an option sets.
_LARGE_BLOCKS = {"tar": "tar -b 2048", "dd": "dd bs=1M", "cpio": "cpio -C 1048576"}
#: A reading of the tracer's clock, within the time of each call; a call of stdio that only copies
#: takes hardly longer. Processors overlap the two: 2 to 15 ns were measured.
CLOCK_SECONDS = 6e-9
LINE_WORK = Work(idioms.write_a_line, "writing and flushing a line")


def excess(facts: Facts, rows: Ints, direction: Direction) -> Floats:
    """Return the seconds in calls of rows minus the cost of their bytes at the reference rate."""
    beyond = facts.cells[rows, direction.kind] - facts.reference.cost(rows, direction)
    return np.asarray(np.maximum(beyond, 0.0))


def claim_excess(
    facts: Facts, rows: Ints, *directions: Direction, share: Floats | float = 1.0
) -> list[Claim]:
    """Return claims of a share of the excess."""
    return [Claim(rows, one.kind, excess(facts, rows, one) * share) for one in directions]


def _avoidable(facts: Facts, rows: Ints, direction: Direction) -> Floats:
    """Return the excess that larger calls would save: not that of writes that wait for the device
    to store the bytes before them. Reads in sequence from a local disk are read
    ahead, at the rate of the device: larger ones save the calls alone. Where most reads wait, the
    program has switched read-ahead off (posix_fadvise, O_DIRECT)."""
    lost = excess(facts, rows, direction)
    if direction is WRITES:
        return np.asarray(np.minimum(lost, facts.cells[rows, WRITE] - facts.stalls[rows]))
    records = facts.records[rows]
    sequential = records["consecutive_reads"] >= SEQUENTIAL * records["reads"]
    waits = facts.usual_reads[rows] >= DEVICE_SECONDS
    ahead = sequential & ~facts.network[facts.file[rows]] & ~waits
    return np.where(ahead, np.minimum(lost, records["reads"] * CALL_SECONDS), lost)


def are_copies(facts: Facts) -> Mask:
    """True for rows whose calls are mostly halves of copies within the kernel."""
    return np.asarray(facts.column("copies") > 0.5 * (facts.reads + facts.writes))


def _belong_to_installed_programs(facts: Facts) -> Mask:
    """True for rows of programs of the system, whose calls no user changes."""
    return facts.are_of_programs(is_installed_program)


def _small_copies(facts: Facts) -> Iterator[Candidate]:
    copies = facts.column("copies")
    moved = facts.column("bytes_read") + facts.column("bytes_written")
    mask = facts.posix & are_copies(facts) & (copies >= MANY_CALLS) & (moved < SMALL_CALL * copies)
    if mask.any():
        yield _copies(scene(facts, mask, facts.cells[:, READ] + facts.cells[:, WRITE]))


def _copies(subject: Scene) -> Candidate:
    facts, rows = subject.facts, subject.rows
    moved = max(subject.total("bytes_read"), subject.total("bytes_written"))
    count = max(float(facts.reads[rows].sum()), float(facts.writes[rows].sum()), 1.0)
    took = sum_seconds(facts, rows, READ, WRITE)
    return subject.candidate(
        title=(
            f"{wording.count(count)} copies of {wording.size(moved / max(count, 1))} within the"
            f" kernel: {subject.place}"
        ),
        cause=(
            f"Each copy_file_range, sendfile or splice costs {wording.seconds(took / count)},"
            " regardless of its bytes."
        ),
        confidence="high",
        evidence=(
            fact(
                f"{wording.count(count)} calls, {wording.size(moved)} together,"
                f" {wording.seconds(took)}{facts.over_all}",
                calls=count,
                mean_bytes=moved / count,
            ),
        ),
        fixes=(code("Copy the whole range with one call, or in blocks of 64 MiB."),),
        claims=claim_excess(facts, rows, READS, WRITES),
        method=f"time of the calls minus {wording.size(moved)} at the rate of large calls",
    )


def _find_small_calls(facts: Facts, direction: Direction) -> Mask:
    many = facts.calls_of(direction) >= MANY_CALLS * files_of_rows(facts)
    mask = facts.posix & (facts.mean_size(direction) < SMALL_CALL) & many
    # A device serves the blocks of a deep queue side by side; smaller requests cost processor time.
    side_by_side = find_deep_queues(facts) & (facts.mean_size(direction) >= LEAST_SIZE)
    return np.asarray(mask & ~are_copies(facts) & ~side_by_side)


def _small(direction: Direction, other: Direction) -> Rule:
    def find(facts: Facts) -> Iterator[Candidate]:
        mask = _find_small_calls(facts, direction)
        if not mask.any():
            return
        others = _find_small_calls(facts, other)
        of_sqlite = databases.find_sqlite(facts)
        scattered = _find_scattered(facts) & (direction is READS) & ~of_sqlite
        for its in (mask & ~of_sqlite & ~scattered, mask & scattered, mask & of_sqlite):
            if its.any():
                subject = scene(facts, its, facts.cells[:, direction.kind])
                work = claim_work(facts, subject.rows, LINE_WORK, 1.0, ending=others)
                found = _candidate(subject, direction, "", work)
                yield _advise_scattered(subject, found) if its[scattered].any() else found

    word, writing = direction.word, direction is WRITES
    return Rule(
        name=f"small-{word}s",
        remedy=f"joining small {word}s into large ones",
        sees=f"Many {word} calls that each move little data.",
        threshold=(
            f"Per process and file at least {MANY_CALLS} calls of less than {SMALL_CALL // 1024}"
            " KiB on average, MPI-IO's own calls left out; asynchronous requests that are side by"
            f" side only below {LEAST_SIZE} B."
        ),
        estimate=(
            "Time of the calls minus the time of their bytes at the best rate of large calls "
            "on the same file system in this job, or at the default rate; and the program's time"
            f" between calls, at most {LINE_WORK.text} for each (needs events)."
        )
        + (
            " Without writes that take far longer than the usual one, because too many bytes wait"
            " for the device (needs events)."
            if writing
            else f" Of sequential reads on local disks at most {wording.seconds(CALL_SECONDS)} per"
            " call, because the kernel reads ahead, unless most reads wait"
            f" {wording.seconds(DEVICE_SECONDS)} or more."
        ),
        advice=(
            "Collect values in a buffer and move them with one call; 64 KiB per call is enough on"
            " most file systems."
            + ("" if writing else " Records out of order: a copy in memory, or order by place.")
        ),
        control="The same bytes in calls of 64 KiB or more.",
        find=find,
        by_calls=True,
        repairs=(repairs.WRITES_BEHIND,) if writing else (repairs.READS_AHEAD, repairs.KEPT_WHOLE),
    )


def _candidate(
    subject: Scene, direction: Direction, layer: str, work: Sequence[Claim] = ()
) -> Candidate:
    """Return a finding on small calls; ``work``: the program's own, between the calls."""
    facts, rows, writing = subject.facts, subject.rows, direction is WRITES
    calls = facts.calls_of(direction)
    count, moved = float(calls[rows].sum()), subject.total(direction.bytes)
    size, took = moved / max(count, 1), sum_seconds(facts, rows, direction.kind)
    stalled = float(facts.stalls[rows].sum()) if writing else 0.0
    waits = f", {wording.seconds(stalled)} of it in few calls that waited for the device"
    rate, seen = (values[subject.files[0]] for values in facts.reference.rate(direction))
    direct = facts.column("direct_calls")[rows].sum() > 0.5 * count
    requests = _ask_for_requests(facts, rows, calls[rows])
    clock = calls[rows] * CLOCK_SECONDS if layer else 0.0
    source = (
        "best rate of large calls in this job" if seen else "default for this kind of file system"
    )
    return subject.candidate(
        title=(
            f"{wording.count(count)} {layer}{'asynchronous ' * requests}{direction.calls} of"
            f" {wording.size(size)} {direction.preposition} {subject.place}"
        ),
        cause=(
            f"Each {'request' if requests else 'call'} costs"
            f" {wording.seconds((took - stalled) / max(count, 1))}, regardless of"
            f" its bytes; the {wording.size(moved)} need only"
            f" {wording.plural(max(round(moved / 1e6), 1), 'call')} of 1 MB."
            + (" With O_DIRECT each call waits for the device." if direct else "")
        ),
        confidence="high" if seen else "medium",
        evidence=(
            fact(
                f"{wording.count(count)} calls, {wording.size(size)} each on average,"
                f" {wording.seconds(took)} in them{facts.over_all}"
                + (waits if stalled >= NAMED_STALLS * took > 0 else ""),
                calls=count,
                mean_bytes=size,
                seconds=took,
                read_in_order=1.0,
            ),
        ),
        fixes=(
            *databases.fixes_of_sqlite(
                subject, databases.OF_WRITES if writing else databases.OF_READS
            ),
            *(
                [_fix_of_requests(writing)]
                if requests
                else _fixes_of_tools(subject) or _fixes(writing, bool(layer), direct)
            ),
        ),
        why_not=_why_not(subject, direct, calls[rows]),
        claims=[Claim(rows, direction.kind, _avoidable(facts, rows, direction) - clock), *work],
        method=(
            f"time of the calls minus {wording.size(moved)} at {wording.rate(float(rate))} "
            f"({source})"
        )
        + (
            ""
            if layer
            else f", and the program's time between calls, at most {LINE_WORK.text} for each"
        ),
    )


def _find_scattered(facts: Facts) -> Mask:
    """True for rows with reads at places out of order: larger ones would read needless bytes."""
    reads, consecutive = facts.column("reads"), facts.column("consecutive_reads")
    backward = reads - consecutive - facts.column("forward_reads")
    return np.asarray((consecutive < 0.5 * reads) & (backward >= BACKWARD * reads))


def _advise_scattered(subject: Scene, found: Candidate) -> Candidate:
    """Return a finding on small reads with the advice for reads at places out of order."""
    facts, rows = subject.facts, subject.rows
    whole = float((facts.records["end_read"] / facts.reference.row_rate(READS))[rows].sum())
    copy = figures_of_copy(facts, rows, worth=whole < sum_seconds(facts, rows, READ))
    evidence, *others = found.evidence
    values = {**evidence.values, **copy, "read_in_order": 0.0}
    waits = bool((facts.usual_reads[rows] >= DEVICE_SECONDS).any())
    read = wording.seconds(evidence.values["seconds"] / max(evidence.values["calls"], 1))
    return replace(
        found,
        cause=(
            f"Each read costs {read}, and the next one is elsewhere in the file, so that neither"
            " the kernel nor a buffer reads it ahead."
        ),
        evidence=(replace(evidence, values=values), *others),
        fixes=(
            *([code(_IN_MEMORY)] if copy["small"] else ()),
            *([code(_SEVERAL)] if waits else ()),
            code(_IN_ORDER),
        ),
    )


def _why_not(subject: Scene, direct: bool, calls: Floats) -> str:
    if databases.is_of_sqlite(subject):
        return databases.WHY_NOT
    if _ask_for_requests(subject.facts, subject.rows, calls):
        return "asynchronous requests pass by the buffers"
    locks = subject.facts.column("locks")[subject.rows]
    if calls[locks >= LOCKED * calls].sum() > 0.5 * calls.sum():
        return "buffers are emptied whenever a lock is set or released, here around each call"
    return "the program asks for calls without buffers by O_DIRECT" if direct else ""


def _ask_for_requests(facts: Facts, rows: Ints, calls: Floats) -> bool:
    """True if most ``calls`` of the rows are asynchronous requests."""
    return bool(calls[find_asynchronous(facts)[rows]].sum() > 0.5 * calls.sum())


def _fix_of_requests(writing: bool) -> Fix:
    verb = "write" if writing else "read"
    first = "Collect the values in a buffer and submit" if writing else "Submit"
    return code(
        f"{first} requests of 64 KiB or more, or call p{verb} for each buffer. Registered"
        " buffers and files of io_uring do not help: each request costs the work of a call."
    )


def _fixes_of_tools(subject: Scene) -> tuple[Fix, ...]:
    """Return the options for larger blocks if programs that have one make all calls."""
    facts, rows = subject.facts, subject.rows
    numbers = facts.job.processes["exe"][facts.records["process"][rows]]
    names = sorted({facts.job.programs[number].rpartition("/")[2] for number in numbers})
    if not _belong_to_installed_programs(facts)[rows].all() or not set(names) <= set(_LARGE_BLOCKS):
        return ()
    options = " and ".join(_LARGE_BLOCKS[name] for name in names)
    return (code(f"Give the program larger blocks: {options}."),)


def _fixes(writing: bool, stdio: bool, direct: bool) -> tuple[Fix, ...]:
    verb, call = ("fwrite", "write") if writing else ("fread", "read")
    if direct:
        return (
            code(
                f"Use buffers of 1 MiB or more and one {call} for each, several of them at a time"
                " (io_uring, threads); or open without O_DIRECT, so that the kernel collects the"
                " bytes."
            ),
        )
    if stdio:
        return (
            code(
                f"{'Fill' if writing else 'Read'} an array and call {verb} once per array instead"
                " of once per value."
            ),
        )
    python = (
        "open(..., buffering=1 << 20) and no flush per line"
        if writing
        else "open() with its default buffer, not buffering=0"
    )
    cpp = " C++: '\\n' instead of std::endl." if writing else ""
    fortran = f"{'write' if writing else 'read'} whole arrays"
    return (
        code(
            f"Collect the values in a buffer of 1 MiB or more and call {call} once per buffer, or"
            f" use stdio ({verb}) with setvbuf.{cpp} Python: {python}. Fortran: {fortran}."
        ),
    )


def _per_value_stdio(facts: Facts) -> Iterator[Candidate]:
    for direction in (WRITES, READS):
        calls = facts.calls_of(direction)
        formatted = facts.column("formatted_calls") > 0.5 * calls
        formatted &= (direction is WRITES) | ~read_characters(facts)
        mask = (
            facts.stdio
            & (facts.mean_size(direction) <= VALUE)
            & (calls >= MANY_VALUES)
            & ~formatted
            & (facts.column("buffer_mode") == 0)
            & ~_belong_to_installed_programs(facts)
        )
        mask[_find_lines(facts, np.flatnonzero(mask), direction)] = False
        if mask.any():
            yield _candidate(
                scene(facts, mask, facts.cells[:, direction.kind]), direction, "stdio "
            )


def read_characters(facts: Facts) -> Mask:
    """True for rows whose reads return a character: a number needs a digit and a separator."""
    return np.asarray(facts.column("bytes_read") < NUMBER_TEXT * facts.reads)


def _find_lines(facts: Facts, rows: Ints, direction: Direction) -> Ints:
    """Return the rows whose calls have the sizes of lines of text that the program makes one by
    one, as far as events tell it: several sizes, and not only those of numbers and records."""
    if not len(rows):
        return rows
    events = facts.job.events
    calls, row = events_of_rows(facts.job, direction.word)
    own = np.isin(row, rows)
    calls, row = calls[own], row[own]
    count = np.maximum(events["count"][calls], 1)
    size = np.minimum(events["length"][calls] // count, 2 * VALUE)
    place = np.searchsorted(rows, row) * (2 * VALUE + 1) + size
    table = sums(place, count, len(rows) * (2 * VALUE + 1)).reshape(len(rows), -1)
    longer = table[:, NUMBER + 1 :]
    odd = longer[:, np.arange(NUMBER + 1, table.shape[1]) % ALIGNED > 0].sum(axis=1)
    many = longer.sum(axis=1)
    lines = (many > 0.5 * table.sum(axis=1)) & (longer.max(axis=1) < ONE_SIZE * many)
    return np.asarray(rows[lines & (odd >= (1 - ONE_SIZE) * many)])


SMALL_COPIES = Rule(
    name="small-copies",
    remedy="copying in large blocks",
    sees="Copies within the kernel (copy_file_range, sendfile, splice) in small blocks.",
    threshold=(
        f"At least {MANY_CALLS} such calls of less than {SMALL_CALL >> 10} KiB on average per"
        " process and file."
    ),
    estimate="Time of the calls minus their bytes at the reference rate, in both files.",
    advice="One call for the whole range.",
    control="The same copy in blocks of 1 MiB.",
    find=_small_copies,
    by_calls=True,
    why_not="the bytes never pass through the program, so that no buffer can join them",
)
RULES = (
    Rule(
        name="stdio-per-value",
        remedy="passing whole arrays to stdio",
        sees=(
            "fwrite or fread called once per value: the buffer saves system calls, but each call"
            " still locks the stream and copies."
        ),
        threshold=(
            f"At least {MANY_VALUES:,} unformatted calls of at most {VALUE} bytes per process and"
            " file, or of scanf for single characters; not with the sizes of lines of text, nor of"
            " programs in /bin, /usr/bin or /usr/libexec, such as sort."
        ),
        estimate=(
            "Time of the calls minus that of their bytes at the reference rate, and minus"
            f" {wording.seconds(CLOCK_SECONDS)} for each call, which the tracer's clock takes."
        ),
        advice="One fwrite or fread per array.",
        control="One fwrite of the whole array.",
        find=_per_value_stdio,
        by_calls=True,
        why_not="the cost is in calls inside the program, which the system hardly sees",
    ),
    _small(WRITES, READS),
    _small(READS, WRITES),
)
