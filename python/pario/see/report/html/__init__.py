"""The report as one self-contained HTML file: no network, no other file, complete without its
script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pario.see.analyze.lanes import lane_words
from pario.see.analyze.model import Analysis, FileRow, JobInfo, Outlier
from pario.see.report.clean import make_printable
from pario.see.report.html import page
from pario.see.report.html.charts import contention, flame, sizes, timeline
from pario.see.report.html.table import Page, render_nonempty, render_table
from pario.see.report.tables import mpiio, progress, run, streams
from pario.see.report.tables.settings import library_hints, settings
from pario.see.report.words import has_ranks, kernel, no_findings, rows_of, slow_call

#: Rows in the page; the JSON report has all rows.
FILE_ROWS = 300
FUNCTION_ROWS = 200
PHASE_ROWS = 200
HINT_ROWS = 200
MPIIO_ROWS = 50
STREAM_ROWS = 100
LOADER_ROWS = 100
LOADERS_OVER_TIME = 12
AUDIT_ROWS = 100
CONTENTION_MAPS = 4
#: Findings shown in full; the smaller ones are folded.
FULL_FINDINGS = 5
PROGRESS_ROWS = 200
_AUDIT_NOTE = "requested, as understood by pario, and in force when the file was closed"


def render(analysis: Analysis) -> str:
    """Return the page, which is below 1 MB for a job of any size."""
    return page.render("page.html.j2", _context(make_printable(analysis)))


def _context(analysis: Analysis) -> dict[str, Any]:
    """Return the values for the template."""
    job, verdict = analysis.job, analysis.verdict
    maps = [item for item in analysis.contention[:CONTENTION_MAPS] if item.targets and item.ranks]
    one, several = lane_words(mpi=has_ranks(job))
    time = (
        analysis.timeline
        if analysis.timeline and analysis.timeline.labels and analysis.timeline.bytes_read
        else None
    )
    waits = [row for row in analysis.loaders if row.wait_share][:LOADERS_OVER_TIME]
    return {
        "analysis": analysis,
        "job": job,
        "has_ranks": has_ranks(job),
        "verdict": verdict,
        "title": verdict.sentence,
        "run": job.command or job.source,
        **_tables(analysis, several),
        "time_charts": [
            timeline.heat_map(time, one, marks(analysis.outliers, job)),
            *([timeline.loader_waits(time, waits)] if waits else []),
            timeline.bandwidth(time, several),
        ]
        if time
        else [],
        "kinds": timeline.kinds(time) if time else (),
        "size_charts": [
            sizes.histogram(row) for row in analysis.sizes if any(row.reads) or any(row.writes)
        ],
        "contention": [
            (item, contention.totals(item, index), contention.heat_map(item, index))
            for index, item in enumerate(maps)
        ],
        "flame": flame.flame_graph(analysis.stacks),
        "full_findings": FULL_FINDINGS,
        "no_findings": no_findings,
        "slow_call": slow_call,
        "kernel_line": kernel,
        "data": page.data(
            {
                "timeline": timeline.data(time, waits) if time else None,
                "contention": {
                    f"contention-{index}": contention.data(item) for index, item in enumerate(maps)
                },
            }
        ),
    }


def marks(outliers: Sequence[Outlier], job: JobInfo) -> list[timeline.Mark]:
    """Return the marks of slow calls whose lane and moment are known."""
    lanes = job.ranks if has_ranks(job) else 0
    return [
        timeline.Mark(outlier.lane, lanes, outlier.start, outlier.seconds, slow_call(outlier))
        for outlier in outliers
        if outlier.lane >= 0 and math.isfinite(outlier.start)
    ]


def _tables(analysis: Analysis, several: str) -> dict[str, Page | list[Page] | int]:
    """Return the tables of the page, and the numbers of rows that it shows."""
    many = analysis.job.ranks > 1

    def audit(name: str, title: str) -> list[Page]:
        return render_nonempty(settings(rows_of(analysis, name)[:AUDIT_ROWS], title, _AUDIT_NOTE))

    buffered = streams.streams(analysis.streams[:STREAM_ROWS], analysis.streams_total)
    calls = mpiio.tables(analysis.mpiio[:MPIIO_ROWS], analysis.mpiio_total)
    return {
        "functions": render_table(run.functions(analysis.functions[:FUNCTION_ROWS], many)),
        "files": render_table(run.files(_file_rows(analysis.files), many)),
        "filesystems": render_table(run.filesystems(analysis.filesystems, analysis.job.ranks)),
        "phases": render_table(run.phases(analysis.phases[:PHASE_ROWS], several)),
        "progress": render_nonempty(progress.calls(analysis.progress, PROGRESS_ROWS)),
        "loaders": render_nonempty(run.loaders(analysis.loaders[:LOADER_ROWS])),
        "stripes": audit("striping", "Hints"),
        "streams": audit("streams", "Hints") + render_nonempty(buffered),
        "stream_rows": len(buffered.rows),
        "mpiio": audit("mpiio", "Hints") + render_nonempty(*calls),
        "mpiio_rows": len(analysis.mpiio[:MPIIO_ROWS]),
        "hints": render_table(library_hints(analysis.hints[:HINT_ROWS])),
    }


def _file_rows(rows: Sequence[FileRow]) -> list[FileRow]:
    """Return the first single files, and all groups."""
    return [row for row in rows if not row.group][:FILE_ROWS] + [row for row in rows if row.group]
