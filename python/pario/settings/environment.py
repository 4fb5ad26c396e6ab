"""A settings file as the variables of the library. The environment wins over the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pario.settings.file import Section, SettingsFile

_YES = ("1", "yes", "on", "true")  # true flags of the library


def variables(file: SettingsFile, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to set, merged with those of the environment."""
    made = {
        setting.key.carried: setting.text
        for setting in file.run
        if setting.key.carried not in environment
    }
    if sets_mpiio(file):
        made.setdefault("PARIO_MPIIO", environment.get("PARIO_MPIIO", "yes"))
    if hints := list(hint_specifications(file)):
        made["PARIO_HINTS"] = ",".join([*hints, *filter(None, [environment.get("PARIO_HINTS")])])
    if streams := list(stream_specifications(file)):
        made["PARIO_STREAMS"] = ",".join(
            [*filter(None, [environment.get("PARIO_STREAMS")]), *streams]
        )
    return made


def is_true(flag: str) -> bool:
    """Tell whether the library takes the value of a flag for true."""
    return flag.lower() in _YES


def uses_own_mpiio(environment: Mapping[str, str]) -> bool:
    """Tell whether the variables turn pario's MPI-IO on."""
    return is_true(environment.get("PARIO_MPIIO", ""))


def sets_mpiio(file: SettingsFile) -> bool:
    """Tell whether a section has settings for pario's MPI-IO."""
    return any(section.of("mpiio") for section in file.sections)


def hint_specifications(file: SettingsFile) -> Iterator[str]:
    """Yield specifications for PARIO_HINTS, in which the last matching pattern wins: the first
    section comes last."""
    for section in reversed(file.sections):
        if section.of("mpiio", "striping"):
            yield _specification(section, "mpiio", "striping")


def stream_specifications(file: SettingsFile) -> Iterator[str]:
    """Yield specifications for PARIO_STREAMS, in which the first matching pattern wins, as in the
    file."""
    for section in file.sections:
        if section.of("streams", "stdio"):
            yield _specification(section, "streams", "stdio")


def _specification(section: Section, *tables: str) -> str:
    return ":".join(
        [
            section.match,
            *(f"{setting.key.carried}={setting.text}" for setting in section.of(*tables)),
        ]
    )
