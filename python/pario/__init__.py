"""pario: see why a program's I/O is slow, fix it without changing the program, and prove it.

The Python API has three modules, which ``import pario`` does not import: :mod:`pario.records`
(files of many records, training), :mod:`pario.checkpoint` (distributed arrays) and
:mod:`pario.archive` (packed directories). Errors that a user can correct are ``ParioError`` of
:mod:`pario.errors`; errors of the system are ``OSError`` and name the file.
"""
