"""Peers of the diagnosis benchmark (bench/peers.py): their recorded outputs as rules of pario."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tomllib
from pathlib import Path

import pytest

from pario.see.analyze.rules import RULES
from tests.diagnosis import corpus
from tests.diagnosis.judging import Diagnosis

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import diagnosis  # noqa: E402
import peers  # noqa: E402

sys.path.pop(0)

TABLE = tomllib.loads((ROOT / "bench/peers.toml").read_text())
PROGRAM = corpus.table()[0]

#: A part of a page of WisIO 0.2.2, narrowed.
WISIO_PAGE = """\
│  Access Pattern   Sequential: 40,000 ops (100.00%) - Random: 0 ops (0.00%)                   │
│  Time View (1 bottleneck with 3 reasons)                                                     │
│  └── [CR1] 1 process accesses 1 file within 1 time period (0) across 40,002 I/O operations.  │
│      ├── [Size imbalance] 'write' size is 80.00% (1.22 MiB) of total I/O size.               │
│      └── [Small writes] Average 'write's are 32 B, which is smaller than 1.00 MiB.           │
│  File View (1 bottleneck with 2 reasons)                                                     │
│  └── [HI2] 1 process accesses 1 file (d887a58bebc8fd5b) across 40,002 I/O operations.        │
│      ├── [Excessive metadata access] Overall 99.35% (0.33 seconds) of I/O time is spent on \
metadata access, specifically 99.13% (0.33 seconds) on the 'open' operation.                   │
│      └── [Excessive metadata access] No reason found, further investigation needed.          │
"""

#: Facts of dftracer-analyzer 0.0.9, without their evidence.
FACTS = json.dumps(
    {
        "schema_version": "analyzer.fact-envelope.v1",
        "facts": [
            {
                "fact_type": "size_imbalance",
                "scope": {"layer": "posix"},
                "severity": {"score": 1.0},
            },
            {
                "fact_type": "small_read_dominance",
                "scope": {"layer": "posix"},
                "severity": {"score": 0.6},
            },
        ],
    }
)

#: A rule of dftracer-analyzer 0.0.9, without its severity.
FACT_RULE = """\
  - id: dlio.reader_posix.small_read_dominance.v1
    source_view: epoch
    scope_layer: reader_posix
    required_metrics:
      - reader_posix_read_size_proc_mean
    when: "reader_posix_read_time_proc_frac_parent > 0.50 and \
reader_posix_read_size_proc_mean < 1048576"
"""

ANSWER = """\
for word in "$@"; do case $word in output.path=*) answer=${word#*=};; esac; done
mkdir "$answer" && echo '{"total_event_count": "35011"}' > "$answer/raw_stats.json"
"""


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Returns a virtual environment with the files of the peers, without programs."""
    packages = tmp_path / "peers/lib/python3.11/site-packages/dftracer"
    for name, text in (
        ("lib64/libdftracer_preload.so", ""),
        ("analyzer/configs/fact_rules/dlio.yaml", FACT_RULE),
    ):
        (packages / name).parent.mkdir(parents=True)
        (packages / name).write_text(text)
    (tmp_path / "peers/bin").mkdir()
    return tmp_path / "peers"


def add_program(environment: Path, name: str, script: str) -> None:
    """Adds a program of the peer, which prints or writes a recorded answer."""
    path = environment / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}")
    path.chmod(0o755)


def make_traces(folder: Path) -> Path:
    """Makes a folder as dftracer leaves it."""
    folder.mkdir()
    (folder / "trace-1-preload.pfw").write_text("[\n")
    return folder


def test_each_rule_in_the_table_is_a_rule_of_pario_or_a_label_of_the_corpus() -> None:
    known = {rule.name for rule in RULES} | {
        label for program in corpus.table() for label in program.rules
    }
    named = {name for peer in TABLE.values() for names in peer.values() for name in names}
    assert named - known == set()


def test_messages_of_wisio_name_their_rule_and_the_operation_on_metadata() -> None:
    assert peers.read_wisio(WISIO_PAGE) == [
        "Size imbalance",
        "Small writes",
        "Excessive metadata access: open",
        "Excessive metadata access",
    ]


def test_facts_of_dftracer_name_their_kind() -> None:
    assert peers.read_facts(f"{FACTS}\n{FACTS}\n") == ["size_imbalance", "small_read_dominance"] * 2


def test_rules_of_dftracer_about_a_reader_become_rules_about_all_calls_of_a_process() -> None:
    assert peers.adapt_rules(FACT_RULE) == (
        "  - id: dlio.posix.small_read_dominance.v1\n"
        "    source_view: proc_name\n"
        "    scope_layer: posix\n"
        "    required_metrics:\n"
        "      - posix_read_size_call_mean\n"
        '    when: "posix_read_time_proc_frac_parent > 0.50 and '
        'posix_read_size_call_mean < 1048576"\n'
    )


def test_messages_become_the_rules_of_the_table_in_no_order() -> None:
    found = peers.translate(["b", "a", "b", "count"], {"a": ["x", "y"], "b": ["y", "z"]}, 2.5)
    assert found == Diagnosis(
        ("x", "y", "z"), (0.0, 0.0, 0.0), 2.5, healthy=False, sentence="a, b, count", ranked=False
    )


def test_messages_that_name_no_problem_are_healthy() -> None:
    assert peers.translate(["Size imbalance"], TABLE["wisio"], 1.0).first == "healthy"


@pytest.mark.parametrize(("kind", "compressed"), [(peers.Dftracer, "1"), (peers.WisIO, "0")])
def test_dftracer_writes_traces_into_the_folder_as_the_analyzer_reads_them(
    environment: Path, tmp_path: Path, kind: type[peers.Dftracer], compressed: str
) -> None:
    variables = kind(environment, {}).variables(tmp_path, PROGRAM)
    assert variables["LD_PRELOAD"].endswith("dftracer/lib64/libdftracer_preload.so")
    assert variables["DFTRACER_LOG_FILE"] == str(tmp_path / "trace")
    assert variables["DFTRACER_TRACE_COMPRESSION"] == compressed


def test_a_page_of_wisio_becomes_a_diagnosis(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "page").write_text(WISIO_PAGE)
    add_program(environment, "wisio", f"cat {tmp_path / 'page'}\n")
    found = peers.WisIO(environment, TABLE["wisio"]).diagnose(make_traces(tmp_path / "run"), 1.0)
    assert {"small-writes", "open-close-loop"} <= set(found.rules)
    assert "seek-storm" in found.rules  # of the message without an operation


def test_facts_become_a_diagnosis(environment: Path, tmp_path: Path) -> None:
    add_program(environment, "dfanalyzer", f"{ANSWER}echo '{FACTS}' > \"$answer/facts.jsonl\"\n")
    peer = peers.Dftracer(environment, TABLE["dftracer"])
    found = peer.diagnose(make_traces(tmp_path / "run"), 1.0)
    assert found.first == "small-reads"
    assert found.sentence == "size_imbalance, small_read_dominance"


def test_an_analysis_without_facts_is_healthy(environment: Path, tmp_path: Path) -> None:
    add_program(environment, "dfanalyzer", ANSWER)
    peer = peers.Dftracer(environment, TABLE["dftracer"])
    assert peer.diagnose(make_traces(tmp_path / "run"), 1.0).first == "healthy"


def test_an_analysis_that_saw_no_call_is_no_statement(environment: Path, tmp_path: Path) -> None:
    add_program(environment, "dfanalyzer", ANSWER.replace("35011", "0"))
    peer = peers.Dftracer(environment, TABLE["dftracer"])
    found = peer.diagnose(make_traces(tmp_path / "run"), 1.0)
    assert (found.first, found.sentence) == ("none", "dfanalyzer saw no call")


@pytest.mark.system  # waits for the limit of a program
def test_a_peer_that_waits_forever_is_started_again(
    environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "LIMIT", 5.0)
    (tmp_path / "page").write_text(WISIO_PAGE)
    again = f"test -e again && exec cat {tmp_path / 'page'}\n: > again\nexec sleep 600\n"
    add_program(environment, "wisio", again)
    found = peers.WisIO(environment, TABLE["wisio"]).diagnose(make_traces(tmp_path / "run"), 1.0)
    assert "small-writes" in found.rules


def test_a_peer_that_always_waits_forever_makes_no_statement(
    environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "LIMIT", 0.1)
    add_program(environment, "wisio", "exec sleep 600\n")
    found = peers.WisIO(environment, {}).diagnose(make_traces(tmp_path / "run"), 1.0)
    assert (found.first, found.sentence) == ("none", "wisio did not end within 0.1 s, 3 times")


@pytest.mark.parametrize("name", ["dfanalyzer", "wisio"])
def test_a_peer_that_fails_makes_no_statement_and_prints_the_reason(
    environment: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    add_program(environment, name, "echo ImportError: no module >&2; exit 3\n")
    peer = {"dfanalyzer": peers.Dftracer, "wisio": peers.WisIO}[name](environment, {})
    found = peer.diagnose(make_traces(tmp_path / "run"), 1.0)
    assert (found.first, found.healthy) == ("none", False)
    assert capsys.readouterr().err == (
        f"no statement of {peer.name}: {name} ended with status 3: ImportError: no module\n"
    )


def test_a_run_without_a_trace_gets_no_statement(environment: Path, tmp_path: Path) -> None:
    found = peers.WisIO(environment, {}).diagnose(tmp_path, 1.0)
    assert (found.first, found.sentence) == ("none", "no trace of dftracer")


def test_a_run_without_a_darshan_log_gets_no_statement(tmp_path: Path) -> None:
    found = peers.Drishti(Path("drishti"), Path("libdarshan.so"), {}).diagnose(tmp_path, 1.0)
    assert (found.first, found.sentence) == ("none", "no Darshan log")


def test_missing_peers_are_named_with_the_reason(
    environment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = argparse.Namespace(drishti=None, darshan=None, dftracer=None, wisio=environment)
    assert list(peers.find(options)) == []
    assert capsys.readouterr().err.splitlines() == [
        "skipped Drishti: it needs --drishti and --darshan",
        "skipped dftracer's analyzer: it needs --dftracer",
        f"skipped WisIO: {environment} has no bin/wisio",
    ]


def test_installed_peers_are_found(environment: Path) -> None:
    for name in ("dfanalyzer", "wisio"):
        add_program(environment, name, "exit 0\n")
    options = argparse.Namespace(
        drishti=None, darshan=None, dftracer=environment, wisio=environment
    )
    assert [peer.name for peer in peers.find(options)] == ["dftracer", "wisio"]


def test_the_summary_counts_programs_without_a_statement() -> None:
    none = Diagnosis((), (), 1.0, healthy=False, sentence="it failed", ranked=False)
    judgement = diagnosis.Judgement(PROGRAM, "wisio", bad=[none], twin=[none])
    (line,) = diagnosis.summarize([judgement])
    assert line.startswith("wisio: first finding right 0 of 1; wrongly healthy 0;")
    assert line.endswith("; no statement about 1")


def test_a_program_that_fails_under_a_peer_gets_no_statement(
    environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object, **options: object) -> corpus.Run:
        raise AssertionError("status 1 instead of 0: tiny_reads\nlast output")

    monkeypatch.setattr(corpus, "run", fail)
    monkeypatch.setattr(corpus, "prepare", lambda *arguments: None)
    place = diagnosis.Place(tmp_path, tmp_path, tmp_path / os.devnull, 1, 1.0)
    found = diagnosis.run_peer(peers.WisIO(environment, {}), place, PROGRAM, repaired=False)
    assert found.first == "none"
    assert "status 1 instead of 0" in found.sentence
