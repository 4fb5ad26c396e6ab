"""The report as one self-contained HTML file: no network, no other file, complete without its script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pario.analyze.lanes import lane_words
from pario.analyze.model import Analysis, FileRow
from pario.report.audit import rows_of
from pario.report.clean import cleaned
from pario.report.html import loaders, mpiio, page, streams, tables
from pario.report.html.audit import hints
from pario.report.html.charts import contention, sizes, timeline
from pario.report.words import has_ranks, no_findings

#: Rows in the page; the JSON report has them all.
FILE_ROWS = 300
FUNCTION_ROWS = 200
PHASE_ROWS = 200
HINT_ROWS = 200
MPIIO_ROWS = 50
STREAM_ROWS = 100
LOADER_ROWS = 100
AUDIT_ROWS = 100
CONTENTION_MAPS = 4
#: Findings told in full; the smaller ones are folded.
FULL_FINDINGS = 5


def render(analysis: Analysis) -> str:
    """The page. Below 1 MB whatever the job's size."""
    return page.render("page.html.j2", _context(cleaned(analysis)))


def _context(analysis: Analysis) -> dict[str, Any]:
    """All that the template shows."""
    job, verdict = analysis.job, analysis.verdict
    maps = [item for item in analysis.contention[:CONTENTION_MAPS] if item.targets and item.ranks]
    one, several = lane_words(mpi=has_ranks(job))
    time = analysis.timeline if analysis.timeline and analysis.timeline.labels and analysis.timeline.bytes_read else None
    return {
        "analysis": analysis,
        "job": job,
        "has_ranks": has_ranks(job),
        "verdict": verdict,
        "title": verdict.sentence,
        "run": job.command or job.source,
        "functions": tables.functions(analysis.functions[:FUNCTION_ROWS], job.ranks > 1),
        "files": tables.files(_file_rows(analysis.files), job.ranks > 1),
        "filesystems": tables.filesystems(analysis.filesystems, job.ranks),
        "phases": tables.phases(analysis.phases[:PHASE_ROWS], several),
        "stripes": [hints(rows)] if (rows := rows_of(analysis, "striping")[:AUDIT_ROWS]) else [],
        "streams": streams.tables(rows_of(analysis, "streams")[:AUDIT_ROWS], analysis.streams[:STREAM_ROWS]),
        "stream_rows": min(STREAM_ROWS, len(analysis.streams)),
        "mpiio": mpiio.tables(rows_of(analysis, "mpiio")[:AUDIT_ROWS], analysis.mpiio[:MPIIO_ROWS]),
        "mpiio_rows": min(MPIIO_ROWS, len(analysis.mpiio)),
        "loaders": loaders.figures(analysis.loaders[:LOADER_ROWS]),
        "hints": tables.hints(analysis.hints[:HINT_ROWS]),
        "time_charts": [timeline.heat_map(time, one), timeline.bandwidth(time, several)] if time else [],
        "kinds": timeline.kinds(time) if time else (),
        "size_charts": [sizes.histogram(row) for row in analysis.sizes if any(row.reads) or any(row.writes)],
        "contention": [(item, contention.totals(item, index), contention.heat_map(item, index)) for index, item in enumerate(maps)],
        "full_findings": FULL_FINDINGS,
        "no_findings": no_findings,
        "data": page.data(
            {
                "timeline": timeline.data(time) if time else None,
                "contention": {f"contention-{index}": contention.data(item) for index, item in enumerate(maps)},
            }
        ),
    }


def _file_rows(rows: Sequence[FileRow]) -> list[FileRow]:
    """The first single files, and all groups."""
    return [row for row in rows if not row.group][:FILE_ROWS] + [row for row in rows if row.group]
