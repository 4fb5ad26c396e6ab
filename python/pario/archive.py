"""Archives: directories of many files packed into few shards.

:func:`pack` writes an archive, :class:`Archive` reads members by name without unpacking.

Examples
--------
>>> from pathlib import Path
>>> from pario.archive import Archive, pack
>>> Path("logs").mkdir()
>>> for run in range(3):
...     _ = Path(f"logs/run-{run}.txt").write_text(f"step {run}")
>>> packing = pack("logs", "logs.pack")
>>> packing.size, packing.shards  # bytes of the files, number of shards
(18, 1)
>>> archive = Archive("logs.pack")
>>> archive.read("run-1.txt")
b'step 1'
>>> archive.read("run-9.txt")
Traceback (most recent call last):
    ...
pario.errors.ParioError: logs.pack has no member run-9.txt; pario ls lists its members
"""

from pario.move.archive import Archive, pack

__all__ = ["Archive", "pack"]
