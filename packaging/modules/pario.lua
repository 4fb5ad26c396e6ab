-- untested
-- Module file of Lmod for a pario in a virtual environment:
--   python3 -m venv /opt/pario/0.1.0 && /opt/pario/0.1.0/bin/pip install .
--   mkdir /opt/pario/0.1.0/commands && ln -s ../bin/pario /opt/pario/0.1.0/commands/pario
help([[pario: see why a program's I/O is slow, fix it without changing the program, prove it.]])
whatis("Name: pario")
whatis("Version: 0.1.0")
local prefix = "/opt/pario/0.1.0"
-- The commands alone, without the Python of the environment.
prepend_path("PATH", pathJoin(prefix, "commands"))
