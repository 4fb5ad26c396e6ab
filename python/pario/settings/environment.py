"""A settings file as the variables that the library reads. The environment that is there already wins over the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pario.settings.file import Section, SettingsFile


def variables(file: SettingsFile, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables to set, those of the environment worked in."""
    made = {setting.key.carried: setting.text for setting in file.run if setting.key.carried not in environment}
    if sets_mpiio(file):
        made.setdefault("PARIO_MPIIO", environment.get("PARIO_MPIIO", "yes"))
    if hints := list(hint_specifications(file)):
        made["PARIO_HINTS"] = ",".join([*hints, *filter(None, [environment.get("PARIO_HINTS")])])
    if streams := list(stream_specifications(file)):
        made["PARIO_STREAMS"] = ",".join([*filter(None, [environment.get("PARIO_STREAMS")]), *streams])
    return made


def sets_mpiio(file: SettingsFile) -> bool:
    """Whether a section has settings that pario's MPI-IO carries out."""
    return any(section.of("mpiio") for section in file.sections)


def hint_specifications(file: SettingsFile) -> Iterator[str]:
    """For PARIO_HINTS, where of several patterns the last wins: the first section comes last."""
    for section in reversed(file.sections):
        if section.of("mpiio", "striping"):
            yield _specification(section, "mpiio", "striping")


def stream_specifications(file: SettingsFile) -> Iterator[str]:
    """For PARIO_STREAMS, where the first pattern decides, as in the file."""
    for section in file.sections:
        if section.of("streams", "stdio"):
            yield _specification(section, "streams", "stdio")


def _specification(section: Section, *tables: str) -> str:
    return ":".join([section.match, *(f"{setting.key.carried}={setting.text}" for setting in section.of(*tables))])
