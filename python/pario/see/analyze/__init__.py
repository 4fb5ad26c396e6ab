"""Analysis: turns the tables of a job into the verdict, the findings and the tables of a report.
Nothing here opens a log or prints."""

from pario.see.analyze import (
    audit,
    bypass,
    contention,
    loaders,
    mpiio,
    outliers,
    overlaps,
    pending,
    phases,
    progress,
    reconcile,
    streams,
    summaries,
    timeline,
    verdict,
)
from pario.see.analyze.call_sites import CallSites
from pario.see.analyze.facts import Facts
from pario.see.analyze.files import file_table
from pario.see.analyze.findings import findings
from pario.see.analyze.functions import functions
from pario.see.analyze.model import Analysis
from pario.see.analyze.split import Times
from pario.see.tables.model import Job

__all__ = ["Analysis", "analyze"]


def analyze(job: Job) -> Analysis:
    """Attribute the time of a job to its causes."""
    facts = Facts(Times(job))
    found = findings(facts)
    kernel = reconcile.kernel_totals(facts)
    state = progress.progress(facts)
    files, file_total = file_table(facts)
    buffered, streams_total = streams.streams(job)
    overlap = overlaps.overlapping_writes(facts)
    return Analysis(
        job=summaries.job_info(facts),
        verdict=verdict.verdict(facts, found, kernel, state),
        findings=found,
        functions=functions(facts),
        files=files,
        file_total=file_total,
        filesystems=summaries.filesystems(facts),
        sizes=summaries.sizes(facts),
        timeline=timeline.timeline(facts),
        phases=phases.phases(facts),
        contention=contention.contention(facts),
        hints=summaries.hints(job),
        messages=(
            *job.messages,
            *bypass.explain_bypass(facts),
            *pending.explain_pending(facts),
            *overlap.messages,
        ),
        audit=audit.audit(job),
        loaders=loaders.loaders(job),
        mpiio=mpiio.mpiio(job),
        mpiio_total=len(job.mpiio),
        stacks=CallSites(facts).stacks(),
        streams=buffered,
        streams_total=streams_total,
        outliers=outliers.outliers(facts),
        kernel=kernel,
        progress=state,
        overlaps=overlap.files,
    )
