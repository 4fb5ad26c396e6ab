"""``pario run --stage DIR=LOCAL``: what the command makes in DIR lies beneath LOCAL, on this node,
and is brought back when it has ended.

The library takes names in DIR for names beneath LOCAL (src/layers/staging/staging.cpp); DIR is not
touched before the files are brought there. Of several launchers on a node the last one brings back
what all have made (:func:`pario.move.staging.in_use`).
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
from pario.move.staging import Staged, in_use
from pario.progress import RateLine

VARIABLE = "PARIO_STAGE"
_ROOT = "files"


@dataclass(frozen=True)
class Stage:
    """A directory, and its stand-in on this node."""

    directory: Path
    named: str  # the directory as an absolute name whose links are not resolved
    local: Path

    @classmethod
    def parse(cls, text: str) -> Stage:
        """``DIR=LOCAL`` or ``DIR/*=LOCAL``; variables of the environment are replaced in LOCAL.
        Raises ParioError."""
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
        real = Path(directory).resolve()
        if real.is_relative_to(Path(below).resolve()) or Path(below).resolve().is_relative_to(real):
            raise ParioError(f"--stage {text}: one of these directories is within the other")
        _make_missing(text, real)
        digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:12]
        return cls(
            real,
            os.path.abspath(directory),  # noqa: PTH100
            Path(below).resolve() / f"pario-stage-{os.getuid()}-{digest}",
        )

    def pairs(self) -> Iterator[str]:
        """For the library: by every name that programs may use."""
        local = self.local / _ROOT
        for name in dict.fromkeys((str(self.directory), self.named)):
            if set(f"{name}{local}") & set(":="):
                raise ParioError(
                    f"--stage: {name} and {local} must have neither ':' nor '=' in their names"
                )
            yield f"{name}={local}"

    def make(self) -> Staged:
        """The local directory."""
        staged = Staged.make(self.local)
        staged.add(_ROOT, self.directory).mkdir(exist_ok=True, mode=0o700)
        return staged


def _make_missing(text: str, directory: Path) -> None:
    """Where the files are to be, as programs make it themselves; not those above, which would hide
    a wrong name."""
    try:
        directory.mkdir(exist_ok=True)
    except OSError as error:
        raise ParioError(
            f"--stage {text}: {directory} is no directory, and cannot be made: {error.strerror}"
        ) from error


@contextmanager
def staging(texts: Sequence[str]) -> Iterator[dict[str, str]]:
    """The variables of a command that is run in the block. Raises ParioError, at the end when files
    could not be brought back. Signals that would end this process then have to be held
    (:class:`pario.see.launch.process.Held`).
    """
    stages = [Stage.parse(text) for text in texts]
    with ExitStack() as stack:
        used = [stack.enter_context(in_use(stage.local, stage.make)) for stage in stages]
        try:
            yield (
                {VARIABLE: ":".join(pair for stage in stages for pair in stage.pairs())}
                if stages
                else {}
            )
        finally:
            left = [text for staged, is_last in used if is_last() for text in _bring_back(staged)]
    if left:
        raise ParioError("; ".join(left))


def _bring_back(staged: Staged) -> list[str]:
    """What could not be, and where it is kept."""
    kept = f"kept in {staged.local}; `pario stage out {staged.local} --remove` tries again"
    line = RateLine(f"to {staged.roots[_ROOT]}")
    try:
        outcome = staged.bring_back(line.show)
        if not outcome.left:
            staged.remove()
    except (ParioError, OSError) as error:
        return [f"{error}; {kept}"]
    finally:
        line.clear()
    if outcome.left:
        return [f"{'; '.join(outcome.left)}; {kept}"]
    if outcome.copied and sys.stderr.isatty():
        print(
            f"pario: {wording.plural(outcome.copied, 'staged file')} ({wording.size(outcome.size)})"
            " brought back",
            file=sys.stderr,
        )
    return []
