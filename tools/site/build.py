"""Builds the documentation site in build/site: README.md as its first page, the pages of docs/, and
those that the product generates. A broken link or anchor is an error.

The site needs no server and no network: pages open as files, and search works there, too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools.site import commands

ROOT = Path(__file__).parents[2]
SOURCE, SITE = ROOT / "build" / "site-source", ROOT / "build" / "site"
#: The script of the theme that search needs in pages opened as files.
_SHIM = "https://unpkg.com/iframe-worker/shim"
#: Roles of references in docstrings, which precede names.
_ROLE = re.compile(r":(meth|func|class|attr|mod|data|exc):(?=<code>|`)")
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s:]+)(#[^)\s]*)?\)")


def write_source(target: Path) -> None:
    """Replace ``target`` by the pages of the site. Links out of docs/ become names of files."""
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(ROOT / "docs", target)
    for page in target.rglob("*.md"):
        folder = "docs" / page.relative_to(target).parent
        page.write_text(name_files_outside(page.read_text(), folder))
    (target / "index.md").write_text(make_first_page((ROOT / "README.md").read_text()))
    generated = {
        "commands": commands.write_page(),
        "hints": _print_page("Hints of MPI-IO", "hints", "--markdown"),
        "keys": _print_page("Keys of pario.toml", "settings", "reference", "--markdown"),
    }
    for name, text in generated.items():
        (target / "reference" / f"{name}.md").write_text(text)


def _print_page(title: str, *command: str) -> str:
    words = [sys.executable, "-m", "pario", *command]
    table = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return f"# {title}\n\nThe output of `pario {' '.join(command)}`.\n\n{table}"


def name_files_outside(text: str, folder: Path) -> str:
    """Return a page of ``folder`` whose links to files outside docs/ are names of these files."""

    def replace(found: re.Match[str]) -> str:
        path = os.path.normpath(folder / found[2])
        if path.startswith("docs/") or not (ROOT / path).exists():
            return found[0]
        return f"`{path}`" if found[1] == path else f"{found[1]} (`{path}`)"

    return _LINK.sub(replace, text)


def make_first_page(readme: str) -> str:
    """Return README.md as a page of docs/."""
    return name_files_outside(readme, Path()).replace("](docs/", "](")


def build() -> None:
    """Build the site. Raises CalledProcessError with the output of Zensical."""
    write_source(SOURCE)
    command = [sys.executable, "-m", "zensical", "build", "-f", str(ROOT / "mkdocs.yml"), "-s"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        findings = re.sub(r"\x1b\[[\d;]*m", "", done.stdout)
        raise SystemExit(f"{findings}\n{done.stderr if not findings else ''}")
    shutil.copy(Path(__file__).parent / "worker.js", SITE / "assets")
    for page in SITE.rglob("*.html"):
        depth = len(page.relative_to(SITE).parts) - 1
        text = page.read_text().replace(_SHIM, "../" * depth + "assets/worker.js")
        text = _ROLE.sub("", text)
        if "https://unpkg.com" in text:
            raise SystemExit(f"{page}: loads a script from the network")
        page.write_text(text)


if __name__ == "__main__":
    build()
