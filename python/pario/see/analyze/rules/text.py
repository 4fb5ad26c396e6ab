"""Rules about streams: numbers written as text, buffers that are too small or missing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze import idioms
from pario.see.analyze.arrays import Floats, Ints, Mask, sums
from pario.see.analyze.cells import READS, WRITE, WRITES, Direction
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import COMPUTE, Claim
from pario.see.analyze.libraries import is_installed_program
from pario.see.analyze.rules import repairs
from pario.see.analyze.rules.base import Candidate, Rule, Scene, code, fact, scene, sum_seconds
from pario.see.analyze.rules.calling import Work, claim_work
from pario.see.analyze.rules.small_files import find_installed

MANY_LINES = 10_000
MUCH_TEXT = 1 << 20
TINY_BUFFER = 4096
MANY_CALLS = 5_000
DIGITS = 18  # bytes of a number in text
BINARY_SHARE = 8 / DIGITS  # a double against its digits in text
LARGE_BUFFER = 1 << 20  # streams have smaller ones; larger writes may hold text made before
#: The conversion of a number, outside of write calls.
CONVERSION = Work(idioms.print_a_number, "turning a number into digits", compiled_share=1.0)
PASSED_ON = 0.8  # bytes read for each byte written by programs that pass text on
DEFAULT_STDIO_CALL = 30e-9


def _text_output(facts: Facts) -> Iterator[Candidate]:
    formatted = facts.column("formatted_calls")
    numbers = facts.column("sampled_numbers") > 0.5 * np.maximum(facts.column("sampled_writes"), 1)
    unsampled = facts.column("sampled_writes") == 0
    unhurried = facts.posix & (
        facts.write_size >= TINY_BUFFER
    )  # in smaller calls the cost of the calls exceeds that of the bytes
    mask = (
        (facts.stdio | unhurried)
        & (facts.column("bytes_written") >= MUCH_TEXT)
        & (facts.writes > 0)
    )
    mask &= np.where(
        unsampled,
        (formatted >= MANY_LINES) & (formatted > 0.5 * facts.writes),
        numbers & ((formatted > 0) | ~_pass_text_on(facts)),
    )
    if mask.any():
        yield _text(facts, scene(facts, mask, facts.cells[:, WRITE]), formatted)


def _pass_text_on(facts: Facts) -> Mask:
    """Return, per row, True if its process read about as many bytes as it wrote, from files or
    pipes: it sorts, filters or copies text, and converts no numbers."""
    read = facts.asked_bytes("bytes_read") * ~find_installed(facts)[facts.file]
    process, processes = facts.records["process"], facts.job.processes
    own = process >= 0
    sums_of = [
        sums(process[own], values[own], len(processes))
        for values in (read, facts.asked_bytes("bytes_written"))
    ]
    passed = sums_of[0] + processes["untraced_bytes_read"] >= PASSED_ON * sums_of[1]
    return np.asarray(own & np.append(passed, False)[process])


def _text(facts: Facts, subject: Scene, formatted: Floats) -> Candidate:
    rows = subject.rows
    moved, calls = facts.records["bytes_written"][rows], float(facts.writes[rows].sum())
    took = sum_seconds(facts, rows, WRITE)
    binary = BINARY_SHARE * facts.reference.cost(rows, WRITES)
    lines = int(formatted[rows].sum()) or calls
    each = (
        "Turning a number into digits costs more than writing it"
        f" ({wording.seconds(took / max(lines, 1))} per call), and text"
    )
    return subject.candidate(
        title=f"{wording.size(float(moved.sum()))} of numbers written as text to {subject.place}",
        cause=(
            f"{each if facts.stdio[rows].all() else 'Text'} is two to three times as large as the"
            " numbers."
        ),
        confidence="high" if (formatted[rows] > 0).all() else "medium",
        evidence=(
            fact(
                f"{wording.count(lines)} formatted calls, {wording.size(float(moved.sum()))},"
                f" {wording.seconds(took)}{facts.over_all}",
                calls=lines,
            ),
        ),
        fixes=(
            code(
                "Write the array as it is: fwrite(values, sizeof *values, n, f); Fortran:"
                " form='unformatted', access='stream'; numpy: save, not savetxt."
            ),
            code("Or HDF5/netCDF, which keep names and units with the numbers."),
        ),
        claims=[
            Claim(rows, WRITE, facts.cells[rows, WRITE] - binary),
            *_conversions(facts, rows[facts.posix[rows] & (facts.write_size[rows] < LARGE_BUFFER)]),
        ],
        method=(
            "time of the formatted writes minus the cost of the numbers in binary (8 of"
            f" {DIGITS} bytes) at the rate of large calls; and the program's time between calls, at"
            f" most {CONVERSION.text} for each number"
        ),
    )


def _conversions(facts: Facts, rows: Ints) -> list[Claim]:
    """Return claims of the computation that turns numbers into digits before a write call: in C++,
    Fortran and Python. printf does it inside the call. At most the time between calls, if events
    tell it."""
    lane = facts.lane[rows]
    numbers = facts.records["bytes_written"][rows] / DIGITS
    if len(facts.job.events):
        each = numbers / np.maximum(facts.writes[rows], 1)
        return claim_work(facts, rows, CONVERSION, 1.0, (numbers, each))
    seconds = sums(lane[lane >= 0], numbers[lane >= 0] * CONVERSION.compiled, facts.ranks)
    lanes = np.unique(lane[lane >= 0])
    return [Claim(lanes, COMPUTE, seconds[lanes])] if len(lanes) else []


_OPTIONS = (
    "Start the program without the option or tool that takes its buffer away: stdbuf -oL or -o0,"
    " grep --line-buffered, sed -u."
)


def _tiny_buffers(facts: Facts) -> Iterator[Candidate]:
    mode, size = facts.column("buffer_mode"), facts.column("buffer_size")
    mean = np.minimum(facts.write_size, facts.read_size)
    calls = facts.writes + facts.reads
    bad = (mode > 0) | ((size > 0) & (size < TINY_BUFFER))
    mask = facts.stdio & bad & (calls >= MANY_CALLS) & (mean < TINY_BUFFER)
    if mask.any():
        yield _buffer(facts, scene(facts, mask, facts.cells.sum(axis=1)))


def _buffer(facts: Facts, subject: Scene) -> Candidate:
    rows = subject.rows
    modes, sizes = facts.records["buffer_mode"][rows], facts.records["buffer_size"][rows]
    what = (
        "unbuffered"
        if (modes == 2).all()
        else (
            "line-buffered"
            if (modes > 0).all()
            else f"buffer of {wording.block(float(sizes.max()))}"
        )
    )
    calls = float((facts.writes + facts.reads)[rows].sum())
    mean = (subject.total("bytes_written") + subject.total("bytes_read")) / calls
    claims = [_buffer_claim(facts, rows, direction) for direction in (WRITES, READS)]
    return subject.candidate(
        title=(
            f"{wording.count(calls)} stdio calls through"
            f" {'an' if what[0] == 'u' else 'a'} {what}{' stream' * bool(modes.any())}:"
            f" {subject.place}"
        ),
        cause=(
            "The stream hands every few bytes to the system; a buffer would collect thousands of"
            " calls into one."
        ),
        confidence="high",
        evidence=(
            fact(
                f"{what}; {wording.count(calls)} calls of {wording.size(mean)}",
                calls=calls,
                buffer=float(sizes.max()),
            ),
        ),
        fixes=(
            *([code(_OPTIONS)] if facts.are_of_programs(is_installed_program)[rows].all() else ()),
            code(
                "setvbuf(f, buffer, _IOFBF, 1 << 20) with a buffer of your own (glibc ignores the"
                " size when the buffer is NULL), before the first call."
            ),
            code(
                "C++: do not use std::endl or std::unitbuf; Python: open(..., buffering=1 << 20);"
                " gfortran: GFORTRAN_FORMATTED_BUFFER_SIZE=1048576."
            ),
        ),
        claims=claims,
        method="time of the calls minus 30 ns per call and the bytes at the rate of large calls",
    )


def _buffer_claim(facts: Facts, rows: Ints, direction: Direction) -> Claim:
    copying = facts.calls_of(direction)[rows] * DEFAULT_STDIO_CALL
    needed = copying + facts.reference.cost(rows, direction)
    return Claim(rows, direction.kind, facts.cells[rows, direction.kind] - needed)


RULES = (
    Rule(
        name="stdio-buffer",
        remedy="buffering streams",
        sees="Streams without a buffer, with a line buffer, or with a buffer far below a page.",
        threshold=(
            f"At least {MANY_CALLS:,} calls of less than {TINY_BUFFER} bytes through a stream that"
            f" is unbuffered, line-buffered or has a buffer below {TINY_BUFFER} bytes; terminals"
            " and pipes do not count."
        ),
        estimate="Time of the calls minus 30 ns per call and the bytes at the reference rate.",
        advice="A full buffer of 1 MiB (setvbuf).",
        control="The same calls through a buffer of 1 MiB.",
        find=_tiny_buffers,
        repairs=(repairs.FULL_BUFFER,),
    ),
    Rule(
        name="text-output",
        remedy="writing numbers in binary",
        sees="Numbers written as text (printf, formatted Fortran, savetxt).",
        threshold=(
            f"At least {MUCH_TEXT >> 20} MiB through at least {MANY_LINES:,} formatted calls, or"
            f" sampled writes that are mostly digits; write calls of less than {TINY_BUFFER} bytes"
            " do not count, because their cost is not that of the bytes, nor do sampled writes of"
            f" processes that read {wording.share(PASSED_ON)} of the bytes that they write: they"
            " pass text on."
        ),
        estimate=(
            f"Time of the writes minus the same numbers in binary (8 of {DIGITS} bytes) at the"
            " reference rate; of write calls below 1 MiB also the program's time between calls, at"
            f" most {CONVERSION.text} for each number."
        ),
        advice="Binary output: fwrite, unformatted Fortran, HDF5, netCDF.",
        control="The same numbers in binary.",
        find=_text_output,
        why_not="the cost is in converting numbers, and the readers of the files expect text",
    ),
)
