"""Reads Darshan logs into the table model, through the C library of the ``darshan`` package.

``read_job`` reads in a process of its own, which a damaged log may kill; ``collect`` reads in this
process.
"""

from pario.see.tables.darshan.apart import read_job
from pario.see.tables.darshan.job import collect

__all__ = ["collect", "read_job"]
