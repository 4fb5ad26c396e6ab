"""Modules of Darshan beyond POSIX, stdio and MPI-IO."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pario.see.analyze import Analysis, analyze
from pario.see.tables import read
from tests.python.darshanlog import (
    DarshanLog,
    apmpi_header,
    apmpi_record,
    heatmap_record,
    named_record,
)


def analyze_modules(place: Path, nprocs: int = 4, **modules: bytes) -> Analysis:
    log = DarshanLog(
        nprocs=nprocs,
        seconds=10,
        format="3.41",
        names={
            1: "/scratch/a",
            2: "pool/cont/b",
            3: "heatmap:POSIX",
            5: "/scratch/a:/temperature",
        },
        modules={name.replace("__", "-"): data for name, data in modules.items()},
    )
    return analyze(read([log.write(place / "a.darshan")]))


def posix(seconds: float = 1.0) -> bytes:
    return named_record("POSIX", 1, 0, WRITES=10, BYTES_WRITTEN=10**7, F_WRITE_TIME=seconds)


def dfs(seconds: float) -> bytes:
    return named_record(
        "DFS",
        2,
        0,
        OPENS=1,
        WRITES=70_000,
        WRITEXS=1000,
        BYTES_WRITTEN=71_000 * 100,
        SIZE_WRITE_0_100=71_000,
        F_WRITE_TIME=seconds,
    )


def test_calls_of_the_file_system_daos_are_io(tmp_path: Path) -> None:
    analysis = analyze_modules(tmp_path, DFS=dfs(8.0))
    assert analysis.verdict.bound == "io"
    assert analysis.verdict.critical.io == pytest.approx(8.0)
    (row,) = analysis.files
    assert (row.path, row.writes, row.filesystem) == ("pool/cont/b", 71_000, "daos")
    assert analysis.findings[0].rule == "small-writes"


def test_calls_on_objects_of_daos_are_io(tmp_path: Path) -> None:
    record = named_record(
        "DAOS", 2, 1, KV_PUTS=5, ARRAY_WRITES=6, BYTES_WRITTEN=10**9, F_WRITE_TIME=7.0
    )
    analysis = analyze_modules(tmp_path, DAOS=record)
    assert (analysis.verdict.bound, analysis.verdict.slowest_rank) == ("io", 1)
    assert (analysis.files[0].writes, analysis.job.bytes_written) == (11, 10**9)


def test_calls_on_objects_inside_calls_on_files_count_once(tmp_path: Path) -> None:
    objects = named_record("DAOS", 9, 0, ARRAY_WRITES=71_000, F_WRITE_TIME=7.9)
    analysis = analyze_modules(tmp_path, DFS=dfs(8.0), DAOS=objects)
    assert analysis.verdict.critical.io == pytest.approx(8.0)


def test_mpi_communication_is_not_called_computation(tmp_path: Path) -> None:
    ranks = [
        apmpi_record(
            rank,
            MPI_BCAST_CALL_COUNT=10,
            MPI_BCAST_TOTAL_BYTES=1000,
            MPI_BCAST_TOTAL_TIME=6.0,
            MPI_BARRIER_CALL_COUNT=5,
            MPI_BARRIER_TOTAL_TIME=2.0,
        )
        for rank in range(4)
    ]
    analysis = analyze_modules(tmp_path, POSIX=posix(), APMPI=apmpi_header() + b"".join(ranks))
    split = analysis.verdict.critical
    assert (split.communication, split.waiting) == (pytest.approx(6.0), pytest.approx(2.0))
    assert analysis.verdict.bound == "communication"
    rows = {row.name: row for row in analysis.functions}
    assert (rows["MPI_Bcast"].calls, rows["MPI_Bcast"].category) == (40, "collective")
    assert "POSIX write" in rows
    assert not any("MPI communication" in text for text in analysis.verdict.not_known)


def test_calls_of_hdf5_and_pnetcdf_have_rows_of_their_layers(tmp_path: Path) -> None:
    analysis = analyze_modules(
        tmp_path,
        POSIX=posix(),
        H5F=named_record("H5F", 1, -1, OPENS=4, F_META_TIME=0.4),
        H5D=named_record(
            "H5D", 5, -1, WRITES=400, BYTES_WRITTEN=4 * 10**6, F_WRITE_TIME=4.0, OPENS=1
        ),
        PNETCDF_FILE=named_record("PNETCDF_FILE", 1, 0, COLL_WAITS=3, F_WAIT_TIME=0.5),
        PNETCDF_VAR=named_record("PNETCDF_VAR", 6, 1, COLL_READS=7, F_READ_TIME=0.2),
    )
    rows = {row.name: (row.category, row.calls, row.seconds) for row in analysis.functions}
    assert rows["HDF5 write"] == ("hdf5", 400, pytest.approx(4.0))
    assert rows["PnetCDF flush"][:2] == ("pnetcdf", 3)
    assert rows["PnetCDF read"] == ("pnetcdf", 7, pytest.approx(0.2))
    assert analysis.verdict.unseen == ()


def test_time_inside_hdf5_is_that_beyond_the_calls_on_its_file(tmp_path: Path) -> None:
    dataset = named_record(
        "H5D", 5, 0, file=1, WRITES=40_000, BYTES_WRITTEN=320_000, F_WRITE_TIME=4.0
    )
    analysis = analyze_modules(tmp_path, POSIX=posix(), H5D=dataset)
    assert analysis.verdict.critical.io == pytest.approx(4.0)
    finding = analysis.findings[0]
    assert (finding.rule, finding.files) == ("hdf5-calls", ("/scratch/a:/temperature",))
    assert finding.title == "40,000 HDF5 writes of 8 B to /scratch/a:/temperature"
    assert analysis.job.bytes_written == 10**7


def test_calls_of_hdf5_alone_make_no_verdict(tmp_path: Path) -> None:
    record = named_record("H5D", 5, -1, WRITES=400, BYTES_WRITTEN=10**9, F_WRITE_TIME=9.0)
    verdict = analyze_modules(tmp_path, H5D=record).verdict
    assert (verdict.bound, verdict.grade) == ("unknown", "unknown")
    assert verdict.sentence.startswith("Incomplete: the log has calls of HDF5, and none of the")


def test_a_heat_map_gives_bytes_over_time(tmp_path: Path) -> None:
    heat = heatmap_record(3, 0, 1.0, [0, 10**7, 0, 0, 0, 0, 0, 0, 0, 0], [0] * 10)
    timeline = analyze_modules(tmp_path, POSIX=posix(0.5), HEATMAP=heat).timeline
    assert timeline is not None
    written = np.array(timeline.bytes_written)
    centre = (np.arange(len(written)) + 0.5) * timeline.bin_seconds
    assert written.sum() == pytest.approx(10**7, rel=1e-3)
    assert written[(centre < 1.0) | (centre > 2.0)].sum() == 0
    assert max(timeline.write_share[0]) == pytest.approx(0.5, rel=0.05)


def test_a_module_with_calls_that_cannot_be_read_makes_the_verdict_unknown(tmp_path: Path) -> None:
    verdict = analyze_modules(tmp_path, POSIX=posix(0.001), MDHIM=bytes(800)).verdict
    assert (verdict.bound, verdict.grade) == ("unknown", "unknown")
    assert verdict.sentence.startswith("Incomplete: module MDHIM of Darshan cannot be read.")
    assert "worth changing" not in verdict.sentence


#: Records of problems whose 5 seconds Darshan adds to those of other calls.
UNSPLIT = {
    "sync-storm": named_record(
        "POSIX", 1, 0, OPENS=1, WRITES=500, FSYNCS=500, BYTES_WRITTEN=256_000, F_WRITE_TIME=5.0
    ),
    "stat-storm": named_record("POSIX", 1, 0, OPENS=1, STATS=20_000, F_META_TIME=5.0),
    "flush-storm": named_record(
        "STDIO", 1, 0, OPENS=1, WRITES=500, FLUSHES=500, BYTES_WRITTEN=20_000, F_WRITE_TIME=5.0
    ),
    "open-close-loop": named_record(
        "POSIX", 1, 0, OPENS=500, STATS=500, WRITES=500, BYTES_WRITTEN=10**6, F_META_TIME=5.0
    ),
}


@pytest.mark.parametrize("rule", UNSPLIT)
@pytest.mark.system
def test_time_that_darshan_adds_to_that_of_other_calls_has_its_cause(
    tmp_path: Path, rule: str
) -> None:
    layer = "STDIO" if rule == "flush-storm" else "POSIX"
    finding = analyze_modules(tmp_path, **{layer: UNSPLIT[rule]}).findings[0]
    assert (finding.rule, finding.seconds) == (rule, pytest.approx(5.0, rel=0.25))


def test_a_single_sync_after_large_writes_is_no_storm(tmp_path: Path) -> None:
    record = named_record(
        "POSIX", 1, 0, OPENS=1, WRITES=500, FSYNCS=1, BYTES_WRITTEN=5 * 10**8, F_WRITE_TIME=5.0
    )
    assert analyze_modules(tmp_path, nprocs=1, POSIX=record).findings == ()


def test_reads_of_modules_without_offsets_are_no_repeated_reads(tmp_path: Path) -> None:
    record = named_record("DFS", 2, 0, OPENS=1, READS=64, BYTES_READ=10**7, F_READ_TIME=5.0)
    assert "re-read" not in {
        finding.rule for finding in analyze_modules(tmp_path, DFS=record).findings
    }


def test_modules_that_all_ranks_import_are_not_to_be_broadcast(tmp_path: Path) -> None:
    counts = {"OPENS": 1, "READS": 2, "BYTES_READ": 10**5, "MAX_BYTE_READ": 10**5 - 1}
    ranks = [named_record("POSIX", 1, rank, **counts, F_READ_TIME=2.0) for rank in range(4)]
    module = "/usr/lib/python3.11/__pycache__/uuid.pyc"
    log = DarshanLog(nprocs=4, names={1: module}, modules={"POSIX": b"".join(ranks)})
    finding = analyze(read([log.write(tmp_path / "a.darshan")])).findings[0]
    assert finding.rule == "all-ranks-read-one-file"
    assert finding.fixes[-1].text.startswith("Import before starting workers")
