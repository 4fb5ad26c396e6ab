"""The language check: the texts that each rule finds, and the limits, which never rise."""

from __future__ import annotations

import subprocess

import pytest
from tools.prose import __main__ as prose
from tools.prose import rules
from tools.prose.extract import extract
from tools.prose.history import check_subject, find_bad_subjects
from tools.prose.names import find_participles
from tools.prose.rules import Source

CPP = """// Told by nobody.
// Second line.
const char* url = "// no comment";  // beside code
/* a block
 * of two lines */
int wide = 1'000'000;  ///< a number
}  // namespace pario
"""


def list_texts(path, text):
    return [(passage.kind, passage.numbers, passage.lines) for passage in extract(path, text)]


def test_comments_of_cpp_are_joined_and_strings_skipped():
    assert list_texts("a.cpp", CPP) == [
        ("comment", [1, 2], ["Told by nobody.", "Second line."]),
        ("comment", [3, 4, 5], ["beside code", " a block", "of two lines "]),
        ("comment", [6], ["a number"]),
    ]


def test_comments_and_docstrings_of_python():
    text = 'x = "# no"  # a comment\n\n\ndef f():\n    """Return one.\n\n    >>> f()\n    """\n'
    assert list_texts("a.py", text) == [
        ("comment", [1], ["a comment"]),
        ("docstring", [5, 6], ["Return one.", ""]),
    ]


def test_markdown_without_code():
    text = "# Title\nA line\nand `code`.\n\n    indented what\n\n```\nwhat\n```\n- item\n"
    assert list_texts("a.md", text) == [
        ("paragraph", [1], ["Title"]),
        ("paragraph", [2, 3], ["A line", "and `code`."]),
        ("paragraph", [10], ["item"]),
    ]


@pytest.mark.parametrize("path", ["a.sh", "a.toml", "CMakeLists.txt", "Makefile"])
def test_comments_after_a_hash(path):
    assert list_texts(path, 'x = "# no" # yes\n') == [("comment", [1], ["yes"])]


def test_rules_apply_to_prose_and_not_to_citations():
    source = Source("a.md", 'What it is, `what` and "what" and what-if.\nAnd so\nwhat else.')
    assert [found.line for found in rules.find_what([source])] == [1, 3]


def test_sentences_whose_subject_is_a_clause():
    text = (
        "What is read lies here. Where it is.\n"
        "Where a rank died, it waits. What is it?\nThose who wait sleep. Those bytes. A rank: Who."
    )
    found = rules.find_clause_subjects([Source("a.md", text)])
    assert [(each.line, each.text) for each in found] == [
        (1, "What is read lies here."),
        (1, "Where it is."),
        (3, "Those who wait sleep."),
        (3, "Who."),
    ]


def test_words_of_the_dialect_with_advice():
    dialect = rules.load_dialect(prose.DIALECT)
    found = rules.find_dialect(
        [Source("a.cpp", "int x;\n// The rank is told by nobody.\n")], dialect
    )
    assert sorted(each.text.partition(" -> ")[2] for each in found) == [
        "no rank, no process, nothing",
        "share, report, return, show",
    ]


def test_long_lines_but_addresses_and_tables():
    long = "x" * 101
    sources = [
        Source("a.cpp", f"{long}\n{long[1:]}\nhttps://{long}\n"),
        Source("a.md", f"| {long} |\n"),
    ]
    assert [(each.path, each.line) for each in rules.find_long_lines(sources)] == [("a.cpp", 1)]


def test_participles_in_cpp():
    text = """
namespace a {
#define PARIO_MADE(x) \\
  int made(x);
class B {
 public:
  bool held() const;
  std::vector<int> carried_out(int x) { return spread(x); }
  int seed();
  explicit B(int told) : kept_(told) {}
 private:
  int kept_;
};
enum class With { alone };
int B::held() const { std::vector<int> taken(3); return taken(1); }
[[nodiscard]] const char* told(
    int x);
int share_told();
}
"""
    assert list(find_participles("a.hpp", text)) == [(7, "held"), (8, "carried_out"), (16, "told")]


def test_participles_in_python():
    text = """
class A:
    @property
    def held(self): ...
    def _taken(self): ...
    def closed(self): ...
    def read(self): ...
def seed(): ...
def shut_down(): ...
def told_by(): ...
"""
    assert list(find_participles("a.py", text)) == [
        (5, "_taken"),
        (9, "shut_down"),
        (10, "told_by"),
    ]


def test_empty_docstrings():
    text = 'def f():\n    """Of it."""\n\n\ndef g():\n    """Return the sum."""\n'
    found = [str(each) for each in rules.find_empty_docstrings([Source("a.py", text)])]
    assert found == ["a.py:2: Of it."]


@pytest.mark.parametrize(
    ("subject", "problem"),
    [
        ("file: register members by scheme", None),
        ("tests/fuzz: follow the new readers", None),
        ("engine, file: pass the error of a rank", None),
        ("checkpoint: who waits gets on", "'who' is not an imperative"),
        ("engine: fixed the bug", "'fixed' is not an imperative"),
        ("engine: shares errors", "'shares' is not an imperative"),
        ("Fix the bug", "not of the form 'module: verb and object'"),
        (f"engine: add {'x' * 54}", "66 characters; at most 65"),
    ],
)
def test_subjects_of_commits(subject, problem):
    assert check_subject(subject) == problem


def test_the_limits_never_rise():
    limits = {"what": 2.5, "dialect": 7}
    measured = {"what": 3.0, "dialect": 5, "long-lines": 9}
    assert prose.lower(limits, measured) == {"what": 2.5, "dialect": 5, "long-lines": 9}
    assert [line.split(",")[0] for line in prose.compare(measured, limits)] == [
        "what: 3",
        "long-lines: 9",
    ]


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "a.md").write_text("Nobody knows.\n")
    run_git(tmp_path, "init", "-q")
    run_git(tmp_path, "add", "a.md")
    return tmp_path


def run_git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True)


def test_a_new_finding_fails(repository, capsys):
    limits = repository / "limits.toml"
    assert prose.main(["--update"], repository, limits) == 0
    assert prose.main([], repository, limits) == 0
    (repository / "a.md").write_text("Nobody knows. Nobody asks.\n")
    assert prose.main(["--update"], repository, limits) == 1
    assert "dialect: 2, at most 1 (python -m tools.prose --list dialect)" in capsys.readouterr().out
    assert prose.main(["--list", "dialect"], repository, limits) == 0
    assert capsys.readouterr().out.count("a.md:1: ") == 2


def test_commits_are_checked_where_there_is_a_history(repository):
    assert list(find_bad_subjects(repository)) == []
    run_git(repository, "commit", "-qm", "told")
    assert [each.text for each in find_bad_subjects(repository)] == [
        "not of the form 'module: verb and object': told"
    ]
