"""Recording of benchmark runs, and their comparison (bench/recording.py, bench/compare.py)."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import compare
import environment
import recording
from recording import Probes, Recorder

sys.path.pop(0)

DAY = "2026-05-04-toy-2c"
ENVIRONMENT = {"command": "python bench/toy.py", "commit": "0123456789abcdef", "dirty": False}


def count_up() -> Iterator[datetime]:
    """Makes a clock whose times are 2.5 s apart."""
    now = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
    while True:
        yield now
        now += timedelta(seconds=2.5)


def make_probes(*loads: float, **facts: object) -> Probes:
    load, clock = iter(loads or (0.25, 0.5)), count_up()
    return Probes(
        load=lambda: next(load),
        clock=lambda: next(clock),
        describe=lambda directories, launchers: ENVIRONMENT | facts,
    )


def parse(results: Path, *words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    recording.add_recording_arguments(parser)
    return parser.parse_args(["--results", str(results), "--machine", "toy-2c", *words])


def record(results: Path, *seconds: float, way: str = "fast", probes: Probes | None = None) -> None:
    with Recorder("toy", parse(results), probes=probes or make_probes()) as recorder:
        for number, one in enumerate(seconds, 1):
            recorder.add(way=way, files=10, round=number, seconds=one)


def read_folder(results: Path) -> str:
    """Returns the content of every recorded file."""
    files = sorted(path for path in results.rglob("*") if path.is_file())
    return "".join(f"== {path.relative_to(results)}\n{path.read_text()}" for path in files)


def test_a_run_writes_rows_and_environment(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    record(tmp_path, 0.5, 1 / 3)
    assert (
        read_folder(tmp_path)
        == """\
== 2026-05-04-toy-2c/env.json
{
 "runs": [
  {
   "benchmark": "toy",
   "run": 1,
   "file": "toy.csv",
   "rows": 2,
   "started": "2026-05-04T03:02:01Z",
   "load": {
    "start": 0.25,
    "end": 0.5
   },
   "command": "python bench/toy.py",
   "commit": "0123456789abcdef",
   "dirty": false,
   "seconds": 2.5,
   "complete": true,
   "error": null
  }
 ]
}
== 2026-05-04-toy-2c/toy.csv
run,started,commit,way,files,round,seconds
1,2026-05-04T03:02:01Z,0123456789ab,fast,10,1,0.5
1,2026-05-04T03:02:01Z,0123456789ab,fast,10,2,0.333333333
"""
    )
    table = tmp_path / DAY / "toy.csv"
    assert capsys.readouterr().err == f"recorded 2 rows as run 1 in {table}\n"


def test_a_second_run_of_the_day_appends(tmp_path: Path) -> None:
    record(tmp_path, 0.5)
    record(tmp_path, 0.75, probes=make_probes(dirty=True))
    assert (
        (tmp_path / DAY / "toy.csv").read_text()
        == """\
run,started,commit,way,files,round,seconds
1,2026-05-04T03:02:01Z,0123456789ab,fast,10,1,0.5
2,2026-05-04T03:02:01Z,0123456789ab+,fast,10,1,0.75
"""
    )
    runs = json.loads((tmp_path / DAY / "env.json").read_text())["runs"]
    assert [(run["run"], run["dirty"]) for run in runs] == [(1, False), (2, True)]


def test_other_columns_go_to_another_file(tmp_path: Path) -> None:
    record(tmp_path, 0.5)
    with Recorder("toy", parse(tmp_path), probes=make_probes()) as recorder:
        recorder.add(way="fast", round=1, seconds=2, quiet=True, state=None, share=float("nan"))
    record(tmp_path, 0.75)
    with Recorder("other", parse(tmp_path), probes=make_probes()) as recorder:
        recorder.add(way="a, b", round=1, seconds=1.0)
    tables = sorted((tmp_path / DAY).glob("*.csv"))
    assert (
        "".join(f"== {path.name}\n{path.read_text()}" for path in tables)
        == """\
== other.csv
run,started,commit,way,round,seconds
1,2026-05-04T03:02:01Z,0123456789ab,"a, b",1,1
== toy-2.csv
run,started,commit,way,round,seconds,quiet,state,share
2,2026-05-04T03:02:01Z,0123456789ab,fast,1,2,yes,,
== toy.csv
run,started,commit,way,files,round,seconds
1,2026-05-04T03:02:01Z,0123456789ab,fast,10,1,0.5
3,2026-05-04T03:02:01Z,0123456789ab,fast,10,1,0.75
"""
    )


def test_a_high_load_is_refused_before_the_measurement(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        record(tmp_path, 0.5, probes=make_probes(1.01))
    assert str(caught.value) == (
        "toy: the load average is 1.01; measurements are recorded at a load of at most 1.00. "
        "Wait until the machine is idle, or measure without recording: --no-record"
    )
    assert read_folder(tmp_path) == ""


def test_the_largest_load_can_be_chosen(tmp_path: Path) -> None:
    with Recorder("toy", parse(tmp_path, "--most-load", "3"), probes=make_probes(2.5, 2.5)) as one:
        one.add(way="fast", round=1, seconds=1.0)
    assert (tmp_path / DAY / "toy.csv").exists()


def test_the_load_that_the_benchmark_causes_is_recorded(tmp_path: Path) -> None:
    record(tmp_path, 0.5, probes=make_probes(1.0, 7.126))
    (run,) = json.loads((tmp_path / DAY / "env.json").read_text())["runs"]
    assert run["load"] == {"start": 1.0, "end": 7.13}


def test_no_record_measures_at_any_load_and_writes_nothing(tmp_path: Path) -> None:
    arguments = parse(tmp_path, "--no-record")
    with Recorder("toy", arguments, probes=make_probes(9.0)) as recorder:
        recorder.add(way="fast", round=1, seconds=1.0)
    assert read_folder(tmp_path) == ""


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (ValueError("no such way\nat all"), "ValueError: no such way"),
    ],
)
def test_an_interrupted_run_keeps_its_rows(tmp_path: Path, error: BaseException, text: str) -> None:
    with (
        pytest.raises(type(error)),
        Recorder("toy", parse(tmp_path), probes=make_probes()) as recorder,
    ):
        recorder.add(way="fast", round=1, seconds=1.5)
        raise error
    (run,) = json.loads((tmp_path / DAY / "env.json").read_text())["runs"]
    assert (run["rows"], run["complete"], run["error"]) == (1, False, text)
    assert (
        (tmp_path / DAY / "toy.csv").read_text()
        == """\
run,started,commit,way,round,seconds
1,2026-05-04T03:02:01Z,0123456789ab,fast,1,1.5
"""
    )


def test_a_terminated_run_keeps_its_rows(tmp_path: Path) -> None:
    with (
        pytest.raises(SystemExit, match="143"),
        Recorder("toy", parse(tmp_path), probes=make_probes()) as recorder,
    ):
        recorder.add(way="fast", round=1, seconds=1.5)
        signal.raise_signal(signal.SIGTERM)
    (run,) = json.loads((tmp_path / DAY / "env.json").read_text())["runs"]
    assert (run["rows"], run["complete"], run["error"]) == (1, False, "SystemExit: 143")
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_run_without_rows_writes_nothing(tmp_path: Path) -> None:
    record(tmp_path)
    assert read_folder(tmp_path) == ""


def test_rows_of_another_process_are_added(tmp_path: Path) -> None:
    lines = tmp_path / "rows"
    lines.write_text('{"way": "a", "round": 1, "seconds": 2.5}\n')
    with Recorder("toy", parse(tmp_path / "results"), probes=make_probes()) as recorder:
        recorder.add_file(lines)
        recorder.add_file(tmp_path / "missing")
    assert (tmp_path / "results" / DAY / "toy.csv").read_text().endswith(",a,1,2.5\n")


@pytest.mark.parametrize(
    "cells",
    [
        {"way": "a", "seconds": 1.0},
        {"way": "a", "round": 1},
        {"run": 1, "round": 1, "seconds": 1.0},
        {"way": "a", "files": 10, "round": 1, "bytes": 1},
    ],
)
def test_rows_of_another_form_are_rejected(tmp_path: Path, cells: dict[str, int]) -> None:
    recorder = Recorder("toy", parse(tmp_path), probes=make_probes())
    recorder.add(way="a", files=10, round=1, seconds=1.0)
    with pytest.raises(ValueError, match=r"row|columns"):
        recorder.add(**cells)


@pytest.mark.parametrize(
    ("processor", "cores", "name"),
    [
        ("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", 2, "xeon-8481c-2c"),
        ("AMD EPYC 7B13 64-Core Processor", 16, "epyc-7b13-16c"),
        ("AMD EPYC", 2, "epyc-2c"),
        ("aarch64", 8, "aarch64-8c"),
    ],
)
def test_a_machine_is_named_after_its_processor(processor: str, cores: int, name: str) -> None:
    assert environment.derive_machine_name(processor, cores) == name


def test_the_machine_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARIO_BENCH_MACHINE", "lab-7")
    parser = argparse.ArgumentParser()
    recording.add_recording_arguments(parser)
    assert parser.parse_args([]).machine == "lab-7"


def test_the_longest_mount_that_holds_the_directory_is_found() -> None:
    mounts = """\
22 27 0:21 / / rw,relatime - ext4 /dev/sda rw,discard
23 22 0:22 / /data rw,noatime shared:1 - overlay overlay rw,lowerdir=/a:/b,index=off
24 22 0:23 / /data/my\\040disk rw - xfs /dev/sdb rw
"""
    directories = ("/home", "/data/x", "/database", "/data/my disk/x")
    found = [environment.find_mount(Path(directory), mounts) for directory in directories]
    assert found == [
        {"type": "ext4", "mount": "/", "options": "rw,relatime,discard"},
        {"type": "overlay", "mount": "/data", "options": "rw,noatime,lowerdir=...,index=off"},
        {"type": "ext4", "mount": "/", "options": "rw,relatime,discard"},
        {"type": "xfs", "mount": "/data/my disk", "options": "rw"},
    ]


def test_the_environment_of_this_machine_has_every_fact(tmp_path: Path) -> None:
    facts = environment.describe_environment([tmp_path], [tmp_path / "mpiexec"])
    names = "command settings commit dirty machine file_systems versions"
    assert sorted(facts) == sorted(names.split())
    assert sorted(facts["machine"]) == ["cores", "kernel", "memory_bytes", "processor"]
    assert sorted(facts["versions"]) == ["gcc", "mpi", "numpy", "pario", "peers", "python"]
    assert facts["versions"]["peers"]["h5py"] == metadata.version("h5py")
    json.dumps(facts)


def write_table(path: Path, text: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return str(path)


def compare_sides(before: str, after: str, value: str | None = None) -> str:
    sides = [compare.read_benchmarks(side, value) for side in (before, after)]
    return "\n".join(compare.compare(*sides))


HEAD = "run,started,commit,way,files,round,seconds,bytes\n"


def test_equal_rounds_are_compared_in_pairs(tmp_path: Path) -> None:
    before = write_table(
        tmp_path / "toy.csv",
        HEAD
        + "1,t,aaaaaaa,fast,10,1,1,100\n1,t,aaaaaaa,fast,10,2,2,100\n1,t,aaaaaaa,fast,10,3,4,100\n"
        + "1,t,aaaaaaa,slow,10,1,8,100\n1,t,aaaaaaa,gone,10,1,8,100\n1,t,aaaaaaa,fast,10,4,,100\n",
    )
    after = write_table(
        tmp_path / "later" / "toy-2.csv",
        HEAD
        + "5,t,bbbbbbb,fast,10,1,2,50\n5,t,bbbbbbb,fast,10,2,2,50\n5,t,bbbbbbb,fast,10,3,2,50\n"
        + "5,t,bbbbbbb,slow,10,1,4,50\n5,t,bbbbbbb,slow,10,2,2,50\n",
    )
    assert (
        compare_sides(before, after)
        == """
toy, seconds

| case | before | after | after/before | from - to | n |
|---|---|---|---|---|---|
| fast, files=10 | 2 | 2 | 1.000 | 0.500 - 2.000 | 3 |
| slow, files=10 | 8 | 3 | ~0.375 | 0.250 - 0.500 | 1/2 |

Cases measured on one side only: 1."""
    )
    assert "| fast, files=10 | 100 | 50 |" in compare_sides(before, after, "bytes")


def test_directories_are_compared_by_benchmark(tmp_path: Path) -> None:
    head = "run,started,commit,way,round,seconds\n"
    for folder, seconds, extra in (("before", 2, "one"), ("after", 3, "two")):
        write_table(tmp_path / folder / "toy.csv", f"{head}1,t,c,fast,1,{seconds}\n")
        write_table(tmp_path / folder / f"{extra}.csv", f"{head}1,t,c,fast,1,1\n")
    assert (
        compare_sides(str(tmp_path / "before"), str(tmp_path / "after"))
        == """
toy, seconds

| case | before | after | after/before | from - to | n |
|---|---|---|---|---|---|
| fast | 2 | 3 | 1.500 | 1.500 - 1.500 | 1 |

Benchmarks measured on one side only: one, two."""
    )


def test_runs_are_selected_by_number_or_commit(tmp_path: Path) -> None:
    table = write_table(
        tmp_path / "toy.csv",
        """\
run,started,commit,way,round,seconds
1,t,aaaaaaaaaaaa,fast,1,1
2,t,bbbbbbbbbbbb+,fast,1,3
3,t,bbbbbbbbbbbb+,fast,1,5
""",
    )
    assert "| fast | 1 | 3 | 3.000 |" in compare_sides(f"{table}@1", f"{table}@2")
    by_commit = compare_sides(f"{table}@aaaaaaa", f"{table}@bbbbbbb")
    assert "| fast | 1 | 4 | ~4.000 | 3.000 - 5.000 | 1/2 |" in by_commit


def test_another_csv_file_is_rejected(tmp_path: Path) -> None:
    table = write_table(tmp_path / "toy.csv", "a,b\n1,2\n")
    with pytest.raises(SystemExit, match=r"not a file of bench/results"):
        compare.read_benchmarks(table, None)
