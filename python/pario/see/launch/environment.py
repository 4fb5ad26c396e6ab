"""The environment of a traced command."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pario.errors import ParioError
from pario.settings.environment import variables
from pario.settings.file import SettingsFile

LIBRARY = "libpario.so"
_ARGUMENTS = "PARIO_TRACE_ARGUMENTS"
_NO = ("0", "no", "off", "false")  # as the library reads flags

#: Open MPI's launchers hand to other hosts only the variables named in a list; Hydra and srun hand
#: over all. Version 5 reads the first. Version 4 reads one of them, and ends a job that has the
#: first and `mpirun -x`.
_OPEN_MPI_LIST = "OMPI_MCA_mca_base_env_list"
_OPEN_MPI_4_LIST = "OMPI_MCA_mca_base_env_list_internal"

#: A program with the address sanitizer refuses to run where a library is loaded before the
#: sanitizer's, unless told that this is wanted.
_LATE_ASAN = "verify_asan_link_order=0"

#: Python imports `sitecustomize` from here: it measures how long training loops wait for their
#: loaders.
_HOOK = str(Path(__file__).parent / "hook")


@dataclass(frozen=True)
class Settings:
    """The user's choices for a recording."""

    output: Path | None = None
    chosen: Mapping[str, str] = field(default_factory=dict)  # variables of the library (hints.def)
    hints: tuple[
        str, ...
    ] = ()  # "key=value" for all files, or "glob:key=value:..." as in MPICH_MPIIO_HINTS
    verify: tuple[str, ...] = ()  # patterns of output files whose checksums are kept
    stages: tuple[
        str, ...
    ] = ()  # "DIR=LOCAL": new files of a directory are on this node until the command has ended
    file: SettingsFile | None = None  # weaker than the environment, and that than the choices above

    def hint_list(self, inherited: str) -> str:
        """PARIO_HINTS: the user's own variable, then the choices, which win."""
        chosen = [hint if ":" in hint else f"*:{hint}" for hint in self.hints]
        return ",".join([*filter(None, [inherited]), *chosen])


def recorded_words(
    command: Sequence[str], environment: Mapping[str, str], settings: Settings
) -> Sequence[str]:
    """The words of a command that may be recorded: all, or its name alone."""
    chosen = dict(environment)
    chosen |= variables(settings.file, environment) if settings.file else {}
    chosen |= settings.chosen
    return command[:1] if chosen.get(_ARGUMENTS, "").lower() in _NO else command


def check(environment: Mapping[str, str], settings: Settings) -> None:
    """Raises ParioError when the library would not understand one of its variables."""
    from pario._native import check_file_hint, check_variables

    chosen = {
        name: value for name, value in environment.items() if name.startswith("PARIO_")
    } | dict(settings.chosen)
    if settings.file:
        chosen |= variables(settings.file, environment)
    if complaints := check_variables([f"{name}={value}" for name, value in chosen.items()]):
        raise ParioError("; ".join(complaints))
    for hint in settings.hints:
        for part in hint.split(":")[1:] if ":" in hint else [hint]:
            key, _, value = part.partition("=")
            if complaint := check_file_hint(key, value):
                raise ParioError(f"--hint {hint}: {complaint}")


def library() -> Path:
    """The library that LD_PRELOAD names; it is installed beside the extension module."""
    override = importlib.util.find_spec("pario._native")
    candidates = [Path(override.origin).parent] if override and override.origin else []
    candidates.append(Path(__file__).parents[2])
    for folder in candidates:
        if (folder / LIBRARY).exists():
            return folder / LIBRARY
    raise ParioError(
        f"{LIBRARY} is not installed beside the Python package; looked in"
        f" {', '.join(map(str, candidates))}"
    )


def traced_environment(
    environment: Mapping[str, str],
    directory: Path,
    settings: Settings,
    executable: Path = Path("/"),
) -> dict[str, str]:
    """``environment`` with the library preloaded before whatever is preloaded already;
    ``executable`` is what will be started."""
    traced = dict(environment)
    ours = str(library())
    others = [
        name
        for name in re.split("[: ]", environment.get("LD_PRELOAD", ""))
        if name not in ("", ours)
    ]
    traced["LD_PRELOAD"] = ":".join([ours, *others])
    traced["ASAN_OPTIONS"] = ":".join(
        filter(None, [_LATE_ASAN, environment.get("ASAN_OPTIONS", "")])
    )
    traced["PARIO_TRACE_DIR"] = str(directory)
    traced["PYTHONPATH"] = _with_hook(environment.get("PYTHONPATH", ""))
    traced |= variables(settings.file, environment) if settings.file else {}
    traced |= settings.chosen
    if settings.hints:
        traced["PARIO_HINTS"] = settings.hint_list(traced.get("PARIO_HINTS", ""))
    handed_on = [name for name in traced if name == "LD_PRELOAD" or name.startswith("PARIO_")]
    name = _open_mpi_list(environment, executable)
    traced[name] = ";".join(
        dict.fromkeys(filter(None, [*environment.get(name, "").split(";"), *handed_on]))
    )
    return traced


def _with_hook(search_path: str) -> str:
    others = search_path.split(os.pathsep) if search_path else []
    return os.pathsep.join([_HOOK, *(entry for entry in others if entry != _HOOK)])


def _open_mpi_list(environment: Mapping[str, str], executable: Path) -> str:
    """The list that the Open MPI which a command is, or may start, takes: version 4's unless it is
    surely version 5."""
    if (
        _OPEN_MPI_LIST in environment or (executable.parent / "prted").exists()
    ):  # a user who sets it has no `-x`
        return _OPEN_MPI_LIST
    has_4 = (executable.parent / "orted").exists() or shutil.which("orted")
    return _OPEN_MPI_4_LIST if has_4 or not shutil.which("prted") else _OPEN_MPI_LIST
