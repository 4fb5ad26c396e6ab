"""Writes the manual page and the completions of bash, zsh and fish, from the parsers of pario.

usage: python -m tools.write_manuals FOLDER, which then has the layout of /usr/share.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pario.cli import build_parser

#: The file of each shell, where packages install it.
COMPLETIONS = {
    "bash": "bash-completion/completions/pario",
    "zsh": "zsh/site-functions/_pario",
    "fish": "fish/vendor_completions.d/pario.fish",
}
_PAGE = "man/man1/pario.1"


def write_manuals(folder: Path) -> list[Path]:
    """Writes all files below a folder and returns their paths."""
    import shtab
    from build_manpages.manpage import Manpage

    parser = build_parser()
    texts = {name: shtab.complete(parser, shell) for shell, name in COMPLETIONS.items()}
    page = Manpage(parser)
    page.manual = "pario"
    texts[_PAGE] = name_purpose(str(page), parser.description or "")
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


def name_purpose(page: str, purpose: str) -> str:
    """Adds the purpose to the name of a manual page: `man -k` and `whatis` find it there."""
    words = " ".join(purpose.split()).rstrip(".")
    line = f"pario \\- {words[:1].lower()}{words[1:]}"
    return page.replace(".SH NAME\npario\n", f".SH NAME\n{line}\n", 1)


if __name__ == "__main__":
    os.environ["COLUMNS"] = "80"  # of the help texts in the page
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tools.write_manuals FOLDER")
    print(*write_manuals(Path(sys.argv[1])), sep="\n")
