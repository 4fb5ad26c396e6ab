"""pario's own logs (docs/log-format.md): blocks of one process, clocks of the hosts, then the
tables of the job."""

from pario.see.tables.own.job import read_job

__all__ = ["read_job"]
