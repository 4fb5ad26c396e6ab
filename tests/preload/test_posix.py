"""POSIX calls in known numbers, with known offsets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.preload.conftest import Compile, Trace
from tests.support.commands import run_command


def select_counts(counts: dict[str, int], **expected: int) -> dict[str, int]:
    return {name: counts[name] for name in expected}


@pytest.mark.parametrize(
    "flags",
    [("-O1",), ("-O2", "-D_FORTIFY_SOURCE=2"), ("-O1", "-D_FILE_OFFSET_BITS=64")],
    ids=["plain", "fortified", "large"],
)
def test_reads_and_writes_are_counted_with_bytes_and_offsets(
    trace: Trace, build: Compile, work: Path, flags: tuple[str, ...]
) -> None:
    run = trace(build("posix.c", *flags), "data")
    expected = {
        **{"opens": 1, "closes": 1, "writes": 5, "reads": 6, "seeks": 2, "failed": 0},
        **{"bytes_written": 1190, "bytes_read": 580, "end_written": 7030, "end_read": 7030},
        **{"short_calls": 1, "zero_reads": 1},
    }
    assert run.status == 0
    assert select_counts(run.counts(work / "data"), **expected) == expected


def test_invalid_names_with_invalid_flags_fail_as_without_the_tracer(
    trace: Trace, build: Compile
) -> None:
    assert trace(build("posix.c"), "invalid").status == 0


@pytest.mark.parametrize("flags", [("-O1",), ("-O2", "-D_FORTIFY_SOURCE=2")], ids=str)
def test_bytes_through_sockets_are_counted(
    trace: Trace, build: Compile, flags: tuple[str, ...]
) -> None:
    run = trace(build("posix.c", *flags), "sockets")
    assert run.status == 0
    (process,) = run.job.processes
    assert (int(process["bytes_received"]), int(process["bytes_sent"])) == (10_160, 10_160)


@pytest.mark.parametrize("flags", [("-O1",), ("-O2", "-D_FORTIFY_SOURCE=2")], ids=str)
def test_waiting_for_descriptors_is_counted_without_events(
    trace: Trace, build: Compile, flags: tuple[str, ...]
) -> None:
    run = trace(build("posix.c", *flags), "polls")
    assert run.status == 0
    names = run.job.function_names
    waits = run.job.functions[run.job.functions["category"] == "peers"]
    counts = {names[row["name"]]: (int(row["calls"]), int(row["failed"])) for row in waits}
    assert counts == {
        **dict.fromkeys(("poll", "ppoll", "select", "pselect"), (1, 0)),
        **dict.fromkeys(("epoll_pwait", "epoll_pwait2"), (1, 0)),
        "epoll_wait": (2, 1),
    }
    assert (waits["seconds"] >= 0.02).all()
    assert not set(counts) & {names[number] for number in run.job.events["function"]}


def test_connections_and_reads_of_pipes_by_stdio_wait_for_others(
    trace: Trace, build: Compile
) -> None:
    run = trace(build("posix.c"), "peers")
    assert run.status == 0
    names, rows = run.job.function_names, run.job.functions
    own = rows[(rows["category"] == "peers") & (rows["process"] == 0)]
    counts = {names[row["name"]]: int(row["calls"]) for row in own}
    filled = counts.pop("untraced_read")
    assert counts == {"connect": 2, "accept": 1, "accept4": 1}
    assert filled in (1, 2), "the lines may come together"
    assert own["seconds"].sum() >= 0.02
    assert run.job.processes["untraced_bytes_read"][0] >= 10


def test_sync_of_all_file_systems_counts_on_the_root(trace: Trace, build: Compile) -> None:
    run = trace(build("posix.c"), "synchronise")
    assert run.status == 0
    assert select_counts(run.counts("/"), syncs=0, opens=0) == {"syncs": 2, "opens": 0}


def test_events_have_the_offsets_of_the_calls(trace: Trace, build: Compile, work: Path) -> None:
    run = trace(build("posix.c"), "data")
    path = work / "data"
    assert run.events(path, "write") == [(0, 1000)]
    assert run.events(path, "writev") == [(1000, 30)]
    assert run.events(path, "pwritev2") == [(1030, 30)]
    assert run.events(path, "read") == [(0, 500), (7020, 10), (7030, 0)]
    assert run.events(path, "readv") == [(500, 30)]


def test_metadata_calls_are_counted_on_their_names(
    trace: Trace, build: Compile, work: Path
) -> None:
    run = trace(build("posix.c"), "metadata")
    expected = {
        "opens": 1,
        "closes": 1,
        "stats": 8,
        "syncs": 2,
        "truncates": 3,
        "others": 1,
        "locks": 3,
        "failed": 0,
    }
    missing = {"stats": 1, "failed": 2, "failed_opens": 1, "opens": 0}
    assert run.status == 0
    assert select_counts(run.counts(work / "meta"), **expected) == expected
    assert select_counts(run.counts(work / "missing"), **missing) == missing
    assert run.counts(work / "moved")["others"] == 1
    assert run.counts(work / "folder")["others"] == 2


def test_walks_of_the_c_library_are_counted_as_listings(
    trace: Trace, build: Compile, work: Path
) -> None:
    run = trace(build("posix.c"), "walks")
    assert run.status == 0
    assert select_counts(run.counts(work / "d"), lists=0, entries=0) == {"lists": 4, "entries": 6}
    assert select_counts(run.counts(work / "d/e"), lists=0, entries=0) == {"lists": 2, "entries": 2}
    assert run.counts(work / "d/e/3")["stats"] == 2


def test_attributes_times_and_synchronous_writes_are_counted(
    trace: Trace, build: Compile, work: Path
) -> None:
    run = trace(build("posix.c"), "attributes")
    expected = {"stats": 4, "others": 3, "failed": 2, "writes": 2, "sync_writes": 1}
    assert run.status == 0
    assert select_counts(run.counts(work / "file"), **expected) == expected


def test_duplicates_share_an_offset_and_appending_writes_begin_at_the_end(
    trace: Trace, build: Compile, work: Path
) -> None:
    run = trace(build("posix.c"), "offsets")
    assert run.status == 0
    assert run.events(work / "offsets", "write") == [
        (0, 100),
        (100, 100),
        (200, 50),
        (250, 7),
        (257, 3),
        (260, 3),
    ]
    assert run.counts(work / "offsets")["append_writes"] == 2
    assert run.counts(work / "offsets")["closes"] == 5


def test_one_file_has_one_name(trace: Trace, build: Compile, work: Path) -> None:
    run = trace(build("posix.c"), "directories")
    expected = {"opens": 2, "bytes_written": 11, "bytes_read": 11, "closes": 2}
    assert run.status == 0
    assert select_counts(run.counts(work / "d/file"), **expected) == expected
    assert run.calls("readdir") + run.calls("readdir64") == 6
    assert run.counts(work / "d")["lists"] == 2  # opendir and rewinddir


def test_files_without_an_ordinary_name_are_seen(trace: Trace, build: Compile, work: Path) -> None:
    run = trace(build("posix.c"), "special")
    by_bytes = {int(row["bytes_written"]): run.job.path(row["file"]) for row in run.job.records}
    assert run.status == 0
    assert by_bytes[5].startswith(str(work / "temp"))
    assert by_bytes[7] == "/memfd:victim"
    (pid,) = run.job.processes["pid"]
    assert by_bytes[8] == f"/dev/shm/pario-victim-{pid}"


def test_calls_between_files_count_on_both(trace: Trace, build: Compile, work: Path) -> None:
    run = trace(build("posix.c"), "between")
    assert run.status == 0
    assert run.counts(work / "in")["bytes_read"] == 1000 + 500 + 300
    assert run.counts(work / "out")["bytes_written"] == 1000 + 500 + 300
    assert run.events(work / "in", "sendfile_source") == [(100, 1000)]
    assert run.events(work / "out", "copy_file_range") == [(5000, 500)]
    assert run.events(work / "out", "splice") == [(1000, 300)]
    assert run.calls("sendfile") == 1


def test_mappings_are_counted_and_their_ends_are_found_by_address(
    trace: Trace, build: Compile, work: Path
) -> None:
    run = trace(build("posix.c"), "mapped")
    expected = {"bytes_mapped": 1 << 20, "syncs": 1, "truncates": 1}
    assert run.status == 0
    assert select_counts(run.counts(work / "mapped"), **expected) == expected
    assert run.calls("munmap") == 1


def test_asynchronous_requests_are_counted_when_collected(
    trace: Trace, build: Compile, work: Path
) -> None:
    run = trace(build("posix.c"), "asynchronous")
    assert run.status == 0
    assert run.events(work / "aio", "aio_return_write") == [(100, 2000)]
    assert run.events(work / "aio", "aio_return") == [(300, 500)]
    counts = run.counts(work / "aio")
    assert counts["async_reads"] == counts["async_writes"] == 1
    assert counts["queue_depth_sum"] == counts["async_requests"] == 2


def test_closing_everything_spares_the_log_and_nothing_else(
    trace: Trace, build: Compile, work: Path
) -> None:
    run = trace(build("posix.c"), "closing")
    assert run.status == 0
    assert run.counts(work / "many")["closes"] == 5
    assert run.counts(work / "after")["bytes_written"] == 9


def test_inherited_descriptors_are_found_out(trace: Trace, build: Compile, work: Path) -> None:
    (work / "given").write_text("0123456789")
    run = trace(build("posix.c"), "inherited", wrap="6<given 7>>given")
    assert run.status == 0
    assert run.stdout == "out\n"
    assert run.events(work / "given", "write") == [(10, 12)]
    assert run.events(work / "given", "read") == [(0, 4)]
    assert run.counts("<stdout>")["bytes_written"] == 4


def test_files_on_the_numbers_of_closed_standard_streams(
    trace: Trace, build: Compile, work: Path
) -> None:
    run = trace(build("posix.c"), "closed")
    assert run.status == 0
    assert run.counts(work / "first")["bytes_written"] == 10
    assert run.counts(work / "second")["bytes_written"] == 20


@pytest.mark.parametrize("name", ["./new", "$PWD/new"])
def test_a_file_that_is_looked_for_before_it_is_made_is_known(
    trace: Trace, work: Path, name: str
) -> None:
    run = trace("sh", "-c", f"[ -e {name} ] || echo text >{name}")
    (made,) = (
        row for number, row in enumerate(run.job.files) if run.job.path(number) == str(work / "new")
    )
    assert (work / "new").read_text() == "text\n"
    assert made["filesystem"] >= 0


TYPES_OF_NETCDF = (
    *("text", "schar", "uchar", "ubyte", "short", "int", "long", "float", "double"),
    *("ushort", "uint", "longlong", "ulonglong", "string"),
)


def symbols_of_netcdf(table: Path) -> set[str]:
    found = set()
    for line in table.read_text().splitlines():
        macro, _, rest = line.partition("(")
        fields = [field.strip() for field in rest.split(",")]
        if macro == "PARIO_NC":
            found.add(fields[1])
        if macro == "PARIO_NC_TYPED":
            begin, end = fields[1:3]
            found |= {begin + end, *(f"{begin}_{kind}{end}" for kind in TYPES_OF_NETCDF)}
    return found


def symbols_of_adios2(table: Path) -> set[str]:
    """The mangled names of a table, by the preprocessor: most are made of parts."""
    printed = (
        "PARIO_ADIOS2_SYMBOL(symbol, ...)=@symbol@",
        "PARIO_ADIOS2_STEP(symbol, ...)=@symbol@",
        "PARIO_ADIOS2_TYPED(type, begin, end, ...)=@begin##end@",
    )
    command = ["cc", "-E", "-P", "-x", "c", *(f"-D{macro}" for macro in printed), table]
    return set(re.findall(r"@(\w+)@", run_command(command, status=0).stdout))


def exported_names(library: Path) -> set[str]:
    names = run_command(["nm", "-D", "--defined-only", library], status=0).stdout.splitlines()
    return {line.split()[2].split("@")[0] for line in names}


def test_the_library_exports_its_tables_and_mpi_and_no_more(library: Path) -> None:
    source = Path(__file__).parents[2] / "src"
    symbols = {
        line.split("(")[1].split(",")[0]
        for table in ("core/symbols/symbols.def", "observe/hdf5/functions.def")
        for line in (source / table).read_text().splitlines()
        if line.startswith(("PARIO_SYMBOL(", "PARIO_HDF5("))
    }
    symbols |= symbols_of_netcdf(source / "observe/netcdf/functions.def")
    symbols |= symbols_of_adios2(source / "observe/adios2/functions.def")
    exported = exported_names(library)
    guarded = {
        "ucp_tag_send_nbx"
    }  # src/core/comm/send_guard.hpp: MPICH over UCX ends a program that sends to a dead rank
    own = {"pario_note", "pario_read_ahead"}  # src/observe/preload/public.cpp
    assert {
        name for name in exported if not name.lower().startswith(("mpi", "pmpi", "ompi"))
    } == symbols | guarded | own


def test_no_function_of_the_library_is_looked_up_when_a_process_starts(library: Path) -> None:
    """Each lookup costs every process of a traced script time: 700 of them doubled its start."""
    defined = exported_names(library)
    lines = run_command(["readelf", "-rW", library], status=0).stdout.splitlines()
    looked_up = {
        line.split()[4].split("@")[0] for line in lines if "_SLO" in line or "_DAT" in line
    }
    assert "dlsym" in looked_up
    assert not looked_up & defined
