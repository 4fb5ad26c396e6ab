"""Logs of any kind into one table model: ``read`` finds out what the paths are and fills a :class:`~pario.tables.model.Job`."""

from pario.tables.errors import ReadError
from pario.tables.model import Job
from pario.tables.read import read

__all__ = ["Job", "ReadError", "read"]
