"""Readers of logs: ``read`` detects the kind of the logs and fills a
:class:`~pario.see.tables.model.Job`."""

from pario.see.tables.errors import ReadError
from pario.see.tables.model import Job
from pario.see.tables.read import is_recording, read

__all__ = ["Job", "ReadError", "is_recording", "read"]
