"""Darshan logs (through the ``darshan`` package's C library) into the table model."""

from pario.see.tables.darshan.apart import read_job

__all__ = ["read_job"]
