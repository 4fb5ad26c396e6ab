"""Settings of I/O: the keys, the file ``pario.toml``, its variables for programs, and explanations.

    file = load(Path("pario.toml"))  # raises SettingsError with file, line, key and range
    variables(file, os.environ)  # PARIO_MPIIO, PARIO_HINTS, PARIO_STREAMS ... for the program
    explain("/home/ada/out.h5", file, os.environ)  # which settings apply, and why

docs/settings.md is the contract for users.
"""

from pario.settings.environment import uses_own_mpiio, variables
from pario.settings.errors import SettingsError
from pario.settings.explain import Applied, explain
from pario.settings.file import Section, Setting, SettingsFile, load, merge_settings
from pario.settings.keys import TABLES, Key, keys
from pario.settings.write import Line, Proposal, write

__all__ = [
    "TABLES",
    "Applied",
    "Key",
    "Line",
    "Proposal",
    "Section",
    "Setting",
    "SettingsError",
    "SettingsFile",
    "explain",
    "keys",
    "load",
    "merge_settings",
    "uses_own_mpiio",
    "variables",
    "write",
]
