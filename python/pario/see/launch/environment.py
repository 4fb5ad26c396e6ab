"""The environment of a traced command."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pario import state
from pario.errors import ParioError
from pario.settings.environment import uses_own_mpiio, variables
from pario.settings.file import SettingsFile

LIBRARY = "libpario.so"
_AUDIT = "libpario-audit.so"
_ARGUMENTS = "PARIO_TRACE_ARGUMENTS"
_NO = ("0", "no", "off", "false")  # false flags of the library
_PNETCDF_HINTS = "PNETCDF_HINTS"

#: The variables with the list of variables that Open MPI's launchers pass to other hosts (Hydra and
#: srun pass all). Version 5 reads the first one. Version 4 reads one of them, and ends a job with
#: the first one and `mpirun -x`.
_OPEN_MPI_LIST = "OMPI_MCA_mca_base_env_list"
_OPEN_MPI_4_LIST = "OMPI_MCA_mca_base_env_list_internal"

#: This option lets programs with the address sanitizer run although another library is loaded
#: before the sanitizer's.
_LATE_ASAN = "verify_asan_link_order=0"

#: The directory of a `sitecustomize` module, which measures the waits of training loops for their
#: loaders.
_HOOK = str(Path(__file__).parent / "hook")


@dataclass(frozen=True)
class Settings:
    """The user's choices for a recording."""

    output: Path | None = None
    chosen: Mapping[str, str] = field(default_factory=dict)  # variables of the library (hints.def)
    # "key=value" for all files, or "glob:key=value:..." as in MPICH_MPIIO_HINTS
    hints: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()  # patterns of output files whose checksums are recorded
    # "DIR=LOCAL": new files of a directory are on this node until the command has ended
    stages: tuple[str, ...] = ()
    # the environment overrides the file, and the choices above override the environment
    file: SettingsFile | None = None

    def hint_list(self, inherited: str) -> str:
        """Return the value of PARIO_HINTS: the inherited value, then the choices, which win."""
        chosen = [hint if ":" in hint else f"*:{hint}" for hint in self.hints]
        return ",".join([*filter(None, [inherited]), *chosen])

    def chosen_variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return an environment with the variables of the file and of the choices, which win."""
        of_file = variables(self.file, environment) if self.file else {}
        return {**environment, **of_file, **self.chosen}


def recorded_words(
    command: Sequence[str], environment: Mapping[str, str], settings: Settings
) -> Sequence[str]:
    """Return the words of a command that may be recorded: all, or its name alone."""
    chosen = settings.chosen_variables(environment)
    return command[:1] if chosen.get(_ARGUMENTS, "").lower() in _NO else command


def check(environment: Mapping[str, str], settings: Settings) -> None:
    """Check the library's variables and the hints. Raises ParioError with those that the library
    would not understand."""
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
    """Return the path of the library for LD_PRELOAD. Raises ParioError if it is missing."""
    return _find_installed(LIBRARY)


def audit_library() -> Path:
    """Return the path of the library for LD_AUDIT, which names the copies of shared libraries to
    the dynamic linker. Raises ParioError if it is missing."""
    return _find_installed(_AUDIT)


def _find_installed(name: str) -> Path:
    """Return the path of a library, which is installed beside the extension module."""
    override = importlib.util.find_spec("pario._native")
    candidates = [Path(override.origin).parent] if override and override.origin else []
    candidates.append(Path(__file__).parents[2])
    for folder in candidates:
        if (folder / name).exists():
            return folder / name
    raise ParioError(
        f"{name} is not installed beside the Python package; looked in"
        f" {', '.join(map(str, dict.fromkeys(candidates)))}"
    )


def traced_environment(
    environment: Mapping[str, str],
    directory: Path,
    settings: Settings,
    executable: Path = Path("/"),
) -> dict[str, str]:
    """Return ``environment`` with the library preloaded before all other libraries;
    ``executable`` is the program to start."""
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
    traced |= _kept_sweeps()
    traced |= variables(settings.file, environment) if settings.file else {}
    traced |= settings.chosen
    if settings.hints:
        traced["PARIO_HINTS"] = settings.hint_list(traced.get("PARIO_HINTS", ""))
    traced |= _pnetcdf_driver(traced)
    handed_on = [
        name
        for name in traced
        if name in ("LD_PRELOAD", "LD_AUDIT", _PNETCDF_HINTS) or name.startswith("PARIO_")
    ]
    name = _open_mpi_list(environment, executable)
    traced[name] = ";".join(
        dict.fromkeys(filter(None, [*environment.get(name, "").split(";"), *handed_on]))
    )
    return traced


def _pnetcdf_driver(traced: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that makes PnetCDF use MPI-IO if pario's MPI-IO is on: from 1.15 on
    PnetCDF has a driver of its own. A driver that the user chose stays."""
    hints = traced.get(_PNETCDF_HINTS, "")
    if not uses_own_mpiio(traced) or "nc_driver" in hints:
        return {}
    return {_PNETCDF_HINTS: ";".join(filter(None, [hints, "nc_driver=mpiio"]))}


def _kept_sweeps() -> dict[str, str]:
    """Return the variable with the best stripes of kept sweeps, if there are any."""
    if not any(state.folder("stripes").glob("*.json")):
        return {}
    from pario.see.analyze.sweeps import describe_for_library, load_sweeps  # imports numpy

    text = describe_for_library(load_sweeps())
    return {"PARIO_STRIPE_SWEEPS": text} if text else {}


def _with_hook(search_path: str) -> str:
    others = search_path.split(os.pathsep) if search_path else []
    return os.pathsep.join([_HOOK, *(entry for entry in others if entry != _HOOK)])


def _open_mpi_list(environment: Mapping[str, str], executable: Path) -> str:
    """Return the variable with the list for the Open MPI that the command is or may start: that of
    version 4 unless it is certainly version 5."""
    # A user who sets the first variable does not use `-x`.
    if _OPEN_MPI_LIST in environment or (executable.parent / "prted").exists():
        return _OPEN_MPI_LIST
    has_4 = (executable.parent / "orted").exists() or shutil.which("orted")
    return _OPEN_MPI_4_LIST if has_4 or not shutil.which("prted") else _OPEN_MPI_LIST
