"""Settings of I/O: the tables of keys, the file ``pario.toml``, what becomes of it in the environment of a program, and why.

    file = load(Path("pario.toml"))          # strict: raises SettingsError with file, line, key, range, and what may have been meant
    variables(file, os.environ)              # PARIO_MPIIO, PARIO_HINTS, PARIO_STREAMS ... for the program
    explain("/home/ada/out.h5", file, os.environ)

docs/settings.md says what users may rely on.
"""

from pario.settings.environment import variables
from pario.settings.errors import SettingsError
from pario.settings.explain import Applied, explain
from pario.settings.file import Section, Setting, SettingsFile, joined, load
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
    "joined",
    "keys",
    "load",
    "variables",
    "write",
]
