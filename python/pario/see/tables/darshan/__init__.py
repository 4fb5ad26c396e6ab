"""Reads Darshan logs into the table model, through the C library of the ``darshan`` package."""

from pario.see.tables.darshan.apart import read_job

__all__ = ["read_job"]
