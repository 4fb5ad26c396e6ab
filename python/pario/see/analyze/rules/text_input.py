"""The rule about numbers that are read as text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze import idioms
from pario.see.analyze.arrays import Floats, Ints, Mask, ratio, sums
from pario.see.analyze.cells import READ, READS
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import Claim
from pario.see.analyze.libraries import is_installed_program
from pario.see.analyze.rules.base import Candidate, Rule, Scene, code, fact, scene, sum_seconds
from pario.see.analyze.rules.calling import Work, claim_work
from pario.see.analyze.rules.rereads import REREAD_FACTOR
from pario.see.analyze.rules.small_calls import read_characters
from pario.see.analyze.rules.text import (
    BINARY_SHARE,
    DIGITS,
    LARGE_BUFFER,
    MANY_LINES,
    MUCH_TEXT,
    TINY_BUFFER,
)
from pario.see.tables.scripts import is_interpreter

#: The conversion of a number, outside of read calls. Streams of C++ and Fortran need several times
#: as long as the function in C, packages of Python make objects, too.
CONVERSION = Work(
    idioms.read_a_number, "turning digits into a number", times=20, compiled_share=0.3
)
CONVERTED = BINARY_SHARE  # bytes written for each byte read by programs that convert files


def _text_input(facts: Facts) -> Iterator[Candidate]:
    formatted = facts.column("formatted_calls")
    scanned = facts.stdio & (formatted >= MANY_LINES) & (formatted > 0.5 * facts.reads)
    scanned &= ~read_characters(facts)
    sampled, numbers = facts.column("sampled_reads"), facts.column("sampled_read_numbers")
    blocks = facts.posix & (facts.read_size >= TINY_BUFFER) & (facts.read_size < LARGE_BUFFER)
    lines = facts.stdio & (facts.reads >= MANY_LINES)
    mask = scanned | ((blocks | lines) & (numbers > 0.5 * sampled))
    mask &= (facts.column("bytes_read") >= MUCH_TEXT) & (facts.column("copies") == 0)
    mask &= ~facts.are_of_programs(_is_tool) & ~_convert_files(facts)
    if mask.any():
        subject = scene(facts, mask, facts.cells[:, READ])
        yield _text(facts, subject, scanned[subject.rows])


def _is_tool(program: str) -> bool:
    """Tell whether a program is one of the system, such as sort, that reads text as such."""
    return is_installed_program(program) and not is_interpreter(program)


def _convert_files(facts: Facts) -> Mask:
    """Return, per row, True if its process writes the numbers that it reads."""
    process, count = facts.records["process"], len(facts.job.processes)
    own = process >= 0
    read, written = (
        sums(process[own], facts.asked_bytes(name)[own], count)
        for name in ("bytes_read", "bytes_written")
    )
    return np.asarray(own & np.append(written >= CONVERTED * read, False)[process])


def _text(facts: Facts, subject: Scene, scanned: Mask) -> Candidate:
    rows = subject.rows
    moved = subject.total("bytes_read")
    return subject.candidate(
        title=f"{wording.size(moved)} of numbers read as text from {subject.place}",
        cause=(
            "Turning digits into numbers costs far more than reading them, and text is two to three"
            " times as large as the numbers."
        ),
        confidence="medium",
        evidence=(
            fact(
                f"{wording.count(float(facts.reads[rows].sum()))} reads,"
                f" {wording.seconds(sum_seconds(facts, rows, READ))}{facts.over_all};"
                f" about {wording.count(moved / DIGITS)} numbers",
                bytes=moved,
            ),
        ),
        fixes=(
            code(
                "Read the array as it is: fread(values, sizeof *values, n, f); Fortran:"
                " form='unformatted', access='stream'; numpy: save and load, not loadtxt; pandas:"
                " Parquet, not CSV."
            ),
            code("Or HDF5/netCDF, which keep names and units with the numbers."),
        ),
        claims=[
            _claim_scans(facts, rows[scanned]),
            *_claim_conversions(facts, rows[~scanned]),
        ],
        method=(
            "time of scanf minus the cost of the numbers in binary (8 of"
            f" {DIGITS} bytes) at the rate of large calls; and the program's time between other"
            f" reads, at most {CONVERSION.text} for each number"
        ),
    )


def _claim_scans(facts: Facts, rows: Ints) -> Claim:
    """Return the claim of calls that convert numbers themselves."""
    binary = BINARY_SHARE * facts.reference.cost(rows, READS)
    return Claim(rows, READ, facts.cells[rows, READ] - binary)


def _claim_conversions(facts: Facts, rows: Ints) -> list[Claim]:
    """Return claims of the computation after each read, as far as events tell it. Of bytes that are
    read again and again only once: the conversions that remain when the numbers are kept."""
    numbers: Floats = facts.records["bytes_read"][rows] / DIGITS
    each = numbers / np.maximum(facts.reads[rows], 1)
    return claim_work(facts, rows, CONVERSION, _distinct(facts, rows), (numbers, each))


def _distinct(facts: Facts, rows: Ints) -> Floats:
    """Return, per row, the part of the bytes read that no earlier read returned."""
    moved, extent = facts.column("bytes_read")[rows], facts.read_extent[rows]
    again = (extent > 0) & (moved > REREAD_FACTOR * extent)
    return np.where(again, ratio(extent, moved), 1.0)


TEXT_INPUT = Rule(
    name="text-input",
    remedy="reading numbers in binary",
    sees="Numbers read as text (scanf, formatted Fortran, loadtxt).",
    threshold=(
        f"At least {MUCH_TEXT >> 20} MiB through at least {MANY_LINES:,} calls of scanf, or sampled"
        f" reads that are mostly digits; not in programs of the system, nor where"
        f" {wording.share(CONVERTED)} of the bytes read are written: such programs convert files."
    ),
    estimate=(
        f"Time of scanf minus the same numbers in binary (8 of {DIGITS} bytes) at the reference"
        f" rate; of other reads below 1 MiB the program's time between calls, at most"
        f" {CONVERSION.text} for each number (needs events); once for bytes that are read again."
    ),
    advice="Binary input: fread, unformatted Fortran, HDF5, netCDF, numpy.load.",
    control="The same numbers in binary.",
    find=_text_input,
    why_not="the cost is in converting numbers, inside the program",
)
