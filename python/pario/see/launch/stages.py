"""``pario run --stage DIR=LOCAL``: new files in DIR are created below LOCAL, on this node, and
moved to DIR after the command has ended.

The library maps names in DIR to names below LOCAL (src/layers/staging/staging.cpp); DIR does not
change before the files are copied back. Of several launchers on a node the last one copies back the
files of all (:func:`pario.move.staging.in_use`).
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pario import wording
from pario.errors import ParioError
from pario.messages import print_note
from pario.move.staging import Staged, in_use
from pario.paths import resolve
from pario.progress import RateLine

VARIABLE = "PARIO_STAGE"
_ROOT = "files"


@dataclass(frozen=True)
class Stage:
    """A directory, and the local directory that replaces it on this node."""

    directory: Path
    named: str  # the directory as an absolute name whose links are not resolved
    local: Path

    @classmethod
    def parse(cls, text: str) -> Stage:
        """Parse ``DIR=LOCAL`` or ``DIR/*=LOCAL``, and make DIR if it is missing. Environment
        variables in LOCAL are expanded. Raises ParioError."""
        directory, equals, local = text.partition("=")
        directory = directory.removesuffix("/*")
        if not equals or not directory or not local or "*" in directory:
            raise ParioError(
                f"--stage {text}: expected DIR=LOCAL, such as 'out/*=$TMPDIR': all that is made"
                " in DIR"
            )
        below = os.path.expandvars(local)
        if "$" in below or not Path(below).is_dir():
            raise ParioError(f"--stage {text}: {below} is no directory on this node")
        real = resolve(directory)
        if real.is_relative_to(resolve(below)) or resolve(below).is_relative_to(real):
            raise ParioError(f"--stage {text}: one of these directories is within the other")
        _make_missing(text, real)
        digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:12]
        return cls(
            real,
            os.path.abspath(directory),  # noqa: PTH100
            resolve(below) / f"pario-stage-{os.getuid()}-{digest}",
        )

    def pairs(self) -> Iterator[str]:
        """Yield the mappings for the library: one for each name that programs may use."""
        local = self.local / _ROOT
        for name in dict.fromkeys((str(self.directory), self.named)):
            if set(f"{name}{local}") & set(":="):
                raise ParioError(
                    f"--stage: {name} and {local} must have neither ':' nor '=' in their names"
                )
            yield f"{name}={local}"

    def make(self) -> Staged:
        """Make the local directory, and return its staging area."""
        return Staged.make(self.local)

    def fill(self, staged: Staged) -> None:
        """Make the directory of the new files in a staging area that is in use."""
        staged.add(_ROOT, self.directory).mkdir(exist_ok=True, mode=0o700)


def _make_missing(text: str, directory: Path) -> None:
    """Make the directory of the results, as programs do. Its parents must exist, so that a
    misspelt name is an error."""
    try:
        directory.mkdir(exist_ok=True)
    except OSError as error:
        raise ParioError(
            f"--stage {text}: {directory} is no directory, and cannot be made: {error.strerror}"
        ) from error


@contextmanager
def staging(texts: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the variables for a command that runs in the block. Raises ParioError, also at the end
    if files could not be copied back. The caller holds signals that would end this process at that
    time (:class:`pario.see.launch.process.HeldSignals`).
    """
    stages = [Stage.parse(text) for text in texts]
    with ExitStack() as stack:
        used = [(stage, *stack.enter_context(in_use(stage.local, stage.make))) for stage in stages]
        try:
            for stage, staged, _ in used:
                stage.fill(staged)
            yield (
                {VARIABLE: ":".join(pair for stage in stages for pair in stage.pairs())}
                if stages
                else {}
            )
        finally:
            left = [
                text
                for stage, staged, is_last in used
                if is_last()
                for text in _bring_back(staged, stage.directory)
            ]
    if left:
        raise ParioError("; ".join(left))


def _bring_back(staged: Staged, directory: Path) -> list[str]:
    """Copy staged files back to a directory; return messages on files that failed, with the place
    that keeps them."""
    kept = f"kept in {staged.local}; `pario stage out {staged.local} --remove` tries again"
    line = RateLine(f"to {directory}")
    try:
        outcome = staged.bring_back(line.show)
        if not outcome.left:
            staged.remove()
    except (ParioError, OSError) as error:
        return [f"{error}; {kept}"]
    finally:
        line.clear()
    if outcome.left:
        others = [f"{wording.count(len(outcome.left) - 6)} others"] if outcome.left[6:] else []
        return ["; ".join([*outcome.left[:6], *others, kept])]
    if outcome.copied and sys.stderr.isatty():
        print_note(
            f"pario: {wording.plural(outcome.copied, 'staged file')} ({wording.size(outcome.size)})"
            " brought back"
        )
    return []
