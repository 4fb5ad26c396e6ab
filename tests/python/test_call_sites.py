"""Call sites: user code among libraries, lines of addresses, the flame graph, their place in
reports."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from pario import _native
from pario.see.analyze import analyze
from pario.see.analyze.call_sites import CallSites, describe, join_places
from pario.see.analyze.cells import KIND_OF_EVENTS, KINDS, WRITE
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import COMMUNICATION, Claim
from pario.see.analyze.libraries import user_depth
from pario.see.analyze.model import CallSite, Finding, StackRow
from pario.see.analyze.split import Times
from pario.see.analyze.waiting import COMMUNICATION as MESSAGES
from pario.see.report import html, terminal
from pario.see.report.html.charts.flame import flame_graph
from pario.see.symbols import elf, programs
from pario.see.tables.model import EVENT_KINDS, SITE, Frame, Job
from pario.see.tables.own.sites import count_without_stack
from tests.python.jobs import add_record, make_job
from tests.python.support import analyses

USER = Frame("/home/u/solver", 0x10, function="main", file="/home/u/solver.c", line=118)


def native(module: str, **facts: str) -> Frame:
    return Frame(module, 0x20, function="inner", **facts)


@pytest.mark.parametrize(
    "inner",
    [
        native("/usr/lib/x86_64-linux-gnu/libc.so.6"),
        native("/opt/hdf5/lib/libhdf5.so.310"),
        native("/opt/hdf5/lib/libhdf5_hl-shared.so"),
        native("/opt/mpich/lib/libmpi.so.12"),
        native("/opt/mpich/lib/libmpich.so"),
        native("/opt/openmpi/lib/libopen-pal.so.80"),
        native("/opt/gcc/lib64/libstdc++.so.6"),
        native("/opt/gcc/lib64/libgfortran.so.5"),
        native("/x/pario/libpario.so"),
        native("/x/lib/python3.11/site-packages/numpy/core/_multiarray.so"),
        native("/x/lib/python3.11/lib-dynload/mmap.so"),
        native("/home/u/solver", file="/usr/include/c++/12/fstream"),
        native("/home/u/solver", file="/rustc/90b35a6239c3/library/std/src/sys/fd/unix.rs"),
        Frame("/home/u/solver", 0x20, function="core::fmt::write"),
        Frame(file="/usr/lib/python3.11/shutil.py", line=3, function="copyfile"),
        Frame(file="/x/lib/python3.11/site-packages/h5py/files.py", line=3, function="open"),
    ],
    ids=lambda frame: frame.module or frame.file,
)
def test_frames_of_libraries_are_not_the_call_site(inner: Frame) -> None:
    assert user_depth((inner, USER)) == 1


@pytest.mark.parametrize(
    "frame",
    [
        USER,
        native("/home/u/lib/libsolver.so"),
        native("/home/u/libcase.so"),
        native("/usr/bin/fio"),
        Frame(file="/home/u/train.py", line=3, function="main"),
    ],
    ids=lambda frame: frame.module or frame.file,
)
def test_the_innermost_frame_of_the_users_code_is_the_call_site(frame: Frame) -> None:
    assert user_depth((native("/lib/libc.so.6"), frame, USER)) == 1


def test_without_user_code_a_package_is_the_call_site() -> None:
    package = Frame(file="/x/lib/python3.11/site-packages/h5py/files.py", line=3, function="open")
    assert user_depth((native("/lib/libc.so.6"), package)) == 1
    assert user_depth(()) == -1


def test_without_user_code_a_function_of_a_library_is_the_call_site() -> None:
    thread = native("/lib/x86_64-linux-gnu/libc.so.6")
    assert user_depth((thread, native("/opt/hdf5/lib/libhdf5.so.310"))) == 1
    assert user_depth((native("/x/pario/libpario.so"), thread)) == -1


def test_places_are_described_as_far_as_they_are_known() -> None:
    assert describe(USER) == "solver.c:118 in main"
    assert describe(Frame("/a/solver", 1, function="f", offset=28)) == "f+0x1c in solver"
    stripped = Frame("/usr/bin/lmp", 0x9F10, function="main", offset=0x8F10)
    assert describe(stripped) == "lmp (it has no line information)"
    assert describe(Frame("/a/solver", 31)) == "0x1f in solver"
    assert describe(Frame(file="/a/b.py", line=2, function="<module>")) == "b.py:2"
    assert describe(Frame(file="/a/b.py", function="Popen.__init__")) == "Popen.__init__ in b.py"


def make_small_writes(
    stacks: tuple[int, ...],
    calls: tuple[int, ...],
    seconds: tuple[float, ...],
    files: tuple[int, ...] = (0,),
) -> Job:
    """Returns a job with 20,002 small writes, whose sites have these stacks (lines 8, 9 and 10; -1:
    not known), calls, seconds and files (-1: not known)."""
    made = make_job(1, wall=10.0)
    made.has.add("sites")
    add_record(made, 0, "/scratch/out", writes=20_002, bytes_written=80_000_000, write_time=4.0)
    made.stacks = [(replace(USER, line=line),) for line in (8, 9, 10)]
    made.function_names = ["write"]
    made.sites = np.zeros(len(stacks), SITE)
    made.sites["stack"] = stacks
    made.sites["kind"] = EVENT_KINDS.index("write")
    made.sites["calls"] = calls
    made.sites["seconds"] = seconds
    made.sites["file"] = files
    return made


@pytest.mark.parametrize(("layer", "lost"), [("mpiio", 2), ("stdio", 20_002)])
def test_calls_of_threads_of_mpiio_need_no_line(layer: str, lost: int) -> None:
    made = make_small_writes((-1, -1), (20_000, 2), (1.5, 2.5), (0, -1))
    add_record(made, 0, "/scratch/out", layer, writes=20_000, bytes_written=80_000_000)
    assert count_without_stack(made) == lost


def find_small_writes(*columns: tuple[float, ...]) -> Finding:
    """Returns the finding on a job of make_small_writes()."""
    made = make_small_writes(*columns)  # type: ignore[arg-type]
    (finding,) = (one for one in analyze(made).findings if one.rule == "small-writes")
    return finding


def test_lines_are_in_the_order_of_the_calls_where_calls_cost_by_their_number() -> None:
    finding = find_small_writes((0, 1), (20_000, 2), (1.5, 2.5))
    assert [site.line for site in finding.sites] == [8, 9]


@pytest.mark.parametrize(
    ("known", "lines", "says"),
    [(60, [], True), (9_999, [], True), (10_001, [8], False), (20_002, [8], False)],
)
def test_a_line_is_named_only_if_most_stacks_are_known(
    known: int, lines: list[int], says: bool
) -> None:
    finding = find_small_writes((0, -1), (known, 20_002 - known), (1.5, 2.5))
    assert [site.line for site in finding.sites] == lines
    lost = [fact.text for fact in finding.evidence if "no line is named" in fact.text]
    assert bool(lost) == says
    if known == 60:
        assert lost == [
            "no line is named: the call stacks of 19,942 of these 20,002 calls were lost"
        ]


def test_calls_on_files_without_rows_name_a_line_that_makes_most_of_them() -> None:
    finding = find_small_writes((0, 1), (9_000, 11_000), (1.5, 1.0), (-1, -1))
    assert [site.line for site in finding.sites] == [9, 8]
    assert not find_small_writes((0, 1, 2), (90_000, 90_000, 2), (1.5, 1.0, 1.0), (-1,) * 3).sites


#: Sites of the file alone, and beside more calls whose files are not known; a few sites of the
#: file, and most of its calls among those, with and without a line that stands out.
OF_FILES = pytest.mark.parametrize(
    ("stacks", "calls", "files", "lines"),
    [
        ((0, 1), (20_002, 90_000), (0, -1), [8]),
        ((0, 1), (10_001, 90_000), (0, -1), [8]),
        ((0, 1), (100, 20_000), (0, -1), [9, 8]),
        ((0, 1, 2), (100, 20_000, 30_000), (0, -1, -1), [10]),
        ((0, 1, 2), (100, 20_000, 20_000), (0, -1, -1), []),
        ((0, 1, 2), (0, 20_000, 20_000), (0, -1, -1), []),
    ],
)


@OF_FILES
def test_lines_are_those_of_the_files_where_they_make_most_of_their_calls(
    stacks: tuple[int, ...], calls: tuple[int, ...], files: tuple[int, ...], lines: list[int]
) -> None:
    finding = find_small_writes(stacks, calls, (1.0,) * len(stacks), files)
    assert [site.line for site in finding.sites] == lines


@OF_FILES
def test_the_busiest_line_is_that_of_the_files_where_it_makes_most_of_their_calls(
    stacks: tuple[int, ...], calls: tuple[int, ...], files: tuple[int, ...], lines: list[int]
) -> None:
    made = make_small_writes(stacks, calls, (1.0,) * len(stacks), files)
    place = CallSites(Facts(Times(made))).busiest_place(("write",), np.array([True]))
    assert place == (f"solver.c:{lines[0]} in main" if lines else "")


def make_site(line: int, share: float, seconds: float = 1.0, file: str = "/a/load.py") -> CallSite:
    name = file.rpartition("/")[2]
    return CallSite(f"{name}:{line} in f", file, line, int(1000 * share), share, seconds, 0)


@pytest.mark.parametrize(
    ("sites", "text", "part"),
    [
        ([], "", ""),
        ([make_site(15, 1.0)], "load.py:15 in f", "100 % of these calls"),
        (
            [make_site(15, 0.5), make_site(12, 0.45)],
            "lines 12 and 15 of load.py",
            "95 % of these calls",
        ),
        (
            [make_site(15, 0.4), make_site(12, 0.3), make_site(9, 0.3)],
            "lines 9, 12 and 15 of load.py",
            "100 % of these calls",
        ),
        (
            [make_site(15, 0.5), make_site(12, 0.5, file="/b/save.py")],
            "load.py:15 in f and save.py:12 in f",
            "100 % of these calls",
        ),
        ([make_site(15, 0.8), make_site(12, 0.2)], "load.py:15 in f", "80 % of these calls"),
        (
            [make_site(15, 0.02, 9.0), make_site(12, 0.98)],
            "load.py:15 in f",
            "90 % of the time of these calls",
        ),
        (
            [make_site(15, 0.02, 5.0), make_site(12, 0.02, 4.5), make_site(9, 0.96, 0.5)],
            "lines 9, 12 and 15 of load.py",
            "100 % of these calls",
        ),
        (
            [make_site(15, 0.02, 5.0), make_site(12, 0.02, 4.5), make_site(9, 0.5, 0.5)],
            "lines 12 and 15 of load.py",
            "95 % of the time of these calls",
        ),
        (
            [make_site(line, 0.25) for line in range(4)],
            "load.py:0 in f",
            "25 % of the time of these calls, the most of any line",
        ),
        (
            [make_site(15, 0.4), make_site(12, 0.3, 1.5), make_site(9, 0.1), make_site(7, 0.1)],
            "load.py:15 in f",
            "40 % of these calls, the most of any line",
        ),
    ],
)
def test_places_are_named_with_their_part_of_the_calls_or_of_their_time(
    sites: list[CallSite], text: str, part: str
) -> None:
    assert join_places(sites) == (text, part)


def test_lines_of_files_without_rows_are_named_together_where_no_other_files_have_such_calls() -> (
    None
):
    made = make_small_writes((0, 1), (10_000, 10_002), (1.0, 1.0), (-1, -1))
    place = CallSites(Facts(Times(made))).busiest_place(("write",), np.array([True]))
    assert place == "lines 8 and 9 of solver.c"


#: A kind of event, its function, the counters of the calls, and the calls at line 8, which belong
#: to the file; 100 calls at line 9 may belong to other files.
@pytest.mark.parametrize(
    ("kind", "function", "counters", "at_site", "lines"),
    [
        ("flush", "fflush", {"flushes": 100}, 80, [8]),
        ("flush", "fflush", {"flushes": 100}, 20, [9]),
        ("map", "mmap", {"maps": 100}, 80, [8]),
        ("map", "mmap", {"maps": 100}, 20, [9]),
        ("map", "munmap", {"maps": 100}, 80, [9]),
        ("truncate", "ftruncate", {"truncates": 100}, 20, [9]),
        ("truncate", "ftruncate", {"truncates": 100}, 80, [8]),
        ("other", "fcntl", {"others": 100}, 20, [9]),
        ("other", "fcntl", {"others": 100}, 80, [8]),
        ("open", "open", {"opens": 20, "failed_opens": 80}, 30, [9]),
    ],
)
def test_calls_of_each_kind_are_compared_with_their_counters(
    kind: str, function: str, counters: dict[str, int], at_site: int, lines: list[int]
) -> None:
    time = next(time for name, _, time in _native.op_table() if name == kind)
    made = make_small_writes((0, 1), (at_site, 100), (1.0, 2.0), (0, -1))
    add_record(made, 0, "/scratch/log", **counters, **{time: 1.0})
    made.function_names = [function]
    made.sites["kind"] = EVENT_KINDS.index(kind)
    made.sites["file"][0] = 1
    facts = Facts(Times(made))
    column = KIND_OF_EVENTS[EVENT_KINDS.index(kind)]
    claim = Claim(np.array([1]), int(column), np.array([1.0]))
    assert [site.line for site in CallSites(facts).of_claims([claim]).sites] == lines


def test_entries_of_directories_are_at_the_lines_of_the_listing() -> None:
    made = make_small_writes((0, 1), (100, 1), (1.0, 0.1), (0, 0))
    add_record(made, 0, "/scratch/steps", lists=1, entries=1000, list_time=1.0)
    made.sites["kind"] = [EVENT_KINDS.index("entry"), EVENT_KINDS.index("list")]
    made.sites["file"] = 1
    claim = Claim(np.array([1]), KINDS.index("list"), np.array([1.0]))
    places = CallSites(Facts(Times(made))).of_claims([claim])
    assert [site.line for site in places.sites] == [8, 9]


def test_communication_that_is_not_claimed_has_no_line() -> None:
    made = make_small_writes((0, 1), (100, 100), (1.0, 9.0), (0, -1))
    made.sites["layer"][1] = MESSAGES
    facts = Facts(Times(made))
    claims = [Claim(np.array([0]), WRITE, np.array([1.0]))]
    for seconds, lines in ((0.0, [8]), (2.0, [9, 8])):
        talk = Claim(np.array([0]), COMMUNICATION, np.array([seconds]))
        places = CallSites(facts).of_claims([*claims, talk])
        assert [site.line for site in places.sites] == lines


def test_lines_of_addr2line_with_inlined_calls_are_parsed() -> None:
    text = (
        "0x0000000000001253\nwrite_piece(int)\n/a/x.cpp:8 (discriminator 3)\nmain\n/a/x.cpp:20\n"
        "0x0000000000001260\n__output_MOD_save\n/a/y.f90:3\n0x0000000000001270\n??\n??:0\n"
    )
    found = programs._parse(text, {0x1253, 0x1260, 0x1270})
    assert found == {
        0x1253: [
            programs.Line("write_piece", "/a/x.cpp", 8),
            programs.Line("main", "/a/x.cpp", 20),
        ],
        0x1260: [programs.Line("output::save", "/a/y.f90", 3)],
        0x1270: [programs.Line("", "", 0)],
    }


def test_a_damaged_program_has_no_symbols_and_no_build_id(tmp_path: Path) -> None:
    whole = Path(sys.executable).resolve().read_bytes()
    for number, size in enumerate((0, 3, 6, 63, 64, 4096, len(whole) // 2)):
        path = tmp_path / f"part{number}"
        path.write_bytes(whole[:size])
        assert elf.Symbols(str(path)).find(0x1000) is None
        assert isinstance(elf.build_id(str(path)), str)
    assert elf.build_id(str(tmp_path / "missing")) == ""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_symbols_give_the_function_of_an_address() -> None:
    program = str(Path(sys.executable).resolve())
    symbols = elf.Symbols(program)
    if not len(symbols._symbols):
        pytest.skip("the interpreter is stripped")
    row = symbols._symbols[len(symbols._symbols) // 2]
    found = symbols.find(int(row["value"]))
    assert found is not None
    assert found.offset == 0
    assert found.name


def test_the_flame_graph_joins_frames_and_is_as_wide_as_its_seconds() -> None:
    rows = (
        StackRow(("main", "save", "write"), 6.0, 100),
        StackRow(("main", "load", "read"), 2.0, 50),
        StackRow(("main", "save", "fsync"), 2.0, 1),
    )
    graph = flame_graph(rows)
    assert graph is not None
    width = {(box.text, box.depth): round(box.width) for box in graph.boxes}
    assert width == {
        ("all I/O", 0): 100,
        ("main", 1): 100,
        ("save", 2): 80,
        ("load", 2): 20,
        ("write", 3): 60,
        ("fsync", 3): 20,
        ("read", 3): 20,
    }
    assert {box.text for box in graph.boxes if box.function} == {"write", "fsync", "read"}
    assert (graph.rows, graph.seconds) == (4, 10.0)


def test_the_flame_graph_is_bounded() -> None:
    rows = [
        StackRow((*(f"f{number}-{depth}" for depth in range(60)), "write"), 1.0, 1)
        for number in range(500)
    ]
    graph = flame_graph(rows)
    assert graph is not None
    assert len(graph.boxes) == 2000
    assert flame_graph([]) is None
    assert flame_graph([StackRow(("main",), 0.0, 1)]) is None


SITES = (
    CallSite("solver.c:118 in write_halo", "/a/solver.c", 118, 92, 0.92, 3.0, 9, ("main.c:7",)),
    CallSite("<b>&.c:1", "/a/b.c", 1, 8, 0.08, 1.0, 9),
)


def with_sites():
    analysis = analyses.rich()
    first = replace(analysis.findings[0], sites=SITES)
    stacks = (StackRow(("main.c:7", "solver.c:118 in write_halo", "write"), 3.0, 92),)
    return replace(analysis, findings=(first, *analysis.findings[1:]), stacks=stacks)


@pytest.mark.parametrize("everything", [False, True], ids=["one screen", "all"])
def test_the_terminal_page_names_the_line_below_the_title(everything: bool) -> None:
    out = StringIO()
    terminal.render(with_sites(), Console(file=out, width=100), all=everything)
    assert "at solver.c:118 in write_halo (92 % of these calls" in out.getvalue()
    assert ("called from main.c:7" in out.getvalue()) == everything
    assert ("<b>&.c:1" in out.getvalue()) == everything


def test_the_terminal_page_says_how_to_get_lines() -> None:
    site = CallSite("write_halo+0x1c in solver", "", 0, 9, 1.0, 3.0, 9)
    analysis = with_sites()
    first = replace(analysis.findings[0], sites=(site,))
    out = StringIO()
    terminal.render(replace(analysis, findings=(first,)), Console(file=out, width=100))
    words = " ".join(out.getvalue().split())
    assert "write_halo+0x1c in solver (100 % of these calls; compile with -g for its line)" in words


def test_the_html_page_names_the_lines_and_has_the_flame_graph() -> None:
    page = html.render(with_sites())
    assert "<code>solver.c:118 in write_halo</code> (92 % of these calls)" in page
    assert "<code>&lt;b&gt;&amp;.c:1</code>" in page
    assert 'class="flame"' in page
    assert 'title="solver.c:118 in write_halo: 3.00 s, 100 %, 92 calls"' in page
