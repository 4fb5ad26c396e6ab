"""The version is that of git's tags, in every form in which pario is built and installed."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tarfile
from importlib import metadata
from pathlib import Path

import pytest

from pario.version import version
from tests.support.commands import run_command

ROOT = Path(__file__).parents[2]
_HOOKS = """
import os, sys
from scikit_build_core import build
for hook in sys.argv[2:]:
    print(getattr(build, hook)(sys.argv[1]))
"""


def git(folder: Path, *words: str) -> str:
    identity = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")}  # fmt: skip
    command = ["git", "-c", "init.defaultBranch=main", "-C", folder, *words]
    return run_command(command, env=os.environ | identity, status=0).stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository without tags, with one commit of what decides the version."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    folder = tmp_path / "clone"
    (folder / "python/pario").mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE", ".git_archival.txt", ".gitattributes"):
        shutil.copy(ROOT / name, folder)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def build_sources(folder: Path, output: Path) -> Path:
    """The source archive of a folder, by the hook that pip and build call."""
    output.mkdir()
    command = [sys.executable, "-c", _HOOKS, output, "build_sdist"]
    run_command(command, cwd=folder, status=0)
    return next(output.glob("*.tar.gz"))


def find_version(folder: Path, output: Path) -> str:
    """The version of the metadata that pip asks for before it builds a wheel."""
    output.mkdir()
    command = [sys.executable, "-c", _HOOKS, output, "prepare_metadata_for_build_wheel"]
    run_command(command, cwd=folder, status=0)
    [made] = output.glob("*.dist-info")
    return metadata.PathDistribution(made).version


@pytest.mark.system
def test_a_tagged_commit_has_the_version_of_its_tag(clone: Path, tmp_path: Path) -> None:
    git(clone, "tag", "v9.8.7")
    assert find_version(clone, tmp_path / "metadata") == "9.8.7"


@pytest.mark.system
def test_a_later_commit_has_the_next_version_and_names_itself(clone: Path, tmp_path: Path) -> None:
    git(clone, "tag", "v9.8.7")
    git(clone, "commit", "-q", "--allow-empty", "-m", "second")
    commit = git(clone, "rev-parse", "--short=7", "HEAD")
    found = find_version(clone, tmp_path / "metadata")
    assert re.fullmatch(rf"9\.8\.8\.dev1\+g{commit}\w*", found)


@pytest.mark.system
def test_a_clone_without_tags_names_the_commit(clone: Path, tmp_path: Path) -> None:
    commit = git(clone, "rev-parse", "--short=7", "HEAD")
    found = find_version(clone, tmp_path / "metadata")
    assert re.fullmatch(rf"0\.1\.dev1\+g{commit}\w*", found)


@pytest.mark.system
def test_a_source_archive_keeps_the_version_without_git(clone: Path, tmp_path: Path) -> None:
    git(clone, "tag", "v9.8.7")
    archive = build_sources(clone, tmp_path / "sdist")
    assert archive.name == "pario-9.8.7.tar.gz"
    with tarfile.open(archive) as sources:
        sources.extractall(tmp_path, filter="data")
    assert find_version(tmp_path / "pario-9.8.7", tmp_path / "metadata") == "9.8.7"


@pytest.mark.system
def test_an_archive_of_git_keeps_the_version(clone: Path, tmp_path: Path) -> None:
    git(clone, "tag", "v9.8.7")
    git(clone, "archive", "--prefix=sources/", "-o", str(tmp_path / "git.tar"), "HEAD")
    with tarfile.open(tmp_path / "git.tar") as sources:
        sources.extractall(tmp_path, filter="data")
    assert find_version(tmp_path / "sources", tmp_path / "metadata") == "9.8.7"


@pytest.mark.system
def test_a_copy_without_git_and_metadata_has_no_version(clone: Path, tmp_path: Path) -> None:
    shutil.copytree(clone, tmp_path / "copy", ignore=shutil.ignore_patterns(".git*"))
    assert find_version(tmp_path / "copy", tmp_path / "metadata") == "0.0"


def test_the_command_its_metadata_and_its_library_agree(tmp_path: Path) -> None:
    shown = run_command([sys.executable, "-m", "pario", "--version"], status=0).stdout.split()
    assert shown == ["pario", version()] == ["pario", metadata.version("pario")]
    run = tmp_path / "run.pario"
    command = ["run", "--no-report", "-o", run, "--", "touch", tmp_path / "file"]
    run_command([sys.executable, "-m", "pario", *command], status=0)
    [log] = run.glob("*.plog")
    assert f'"pario":"{version()}"'.encode() in log.read_bytes().replace(b": ", b":")


def test_a_release_has_a_heading_in_the_changelog() -> None:
    tags = run_command(["git", "-C", ROOT, "tag", "--merged"]).stdout.split()
    if not (tags := [tag for tag in tags if re.fullmatch(r"v\d[\d.]*", tag)]):
        pytest.skip("no tag of a release")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert [tag for tag in tags if f"\n## {tag[1:]} " not in changelog] == []
