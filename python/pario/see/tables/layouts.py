"""Layouts of striped files from the raw attributes of file systems: Lustre's ``lustre.lov``,
CephFS's layout text."""

from __future__ import annotations

from pario import _native
from pario.filesystems import ROWS, kind_of_attribute
from pario.see.tables.model import Layout

_ALL = 0xFFFF  # stripe count of a file on all targets


def parse_layout(kind: str, value: bytes) -> Layout:
    """Return the layout in an extended attribute.

    For a composite file of Lustre it is that of the last striped component with objects, which
    holds the end of the file.

    Parameters
    ----------
    kind : str
        Name of the attribute: lustre.lov, ceph.file.layout or ceph.dir.layout.
    value : bytes
        The raw value of the attribute.

    Raises
    ------
    ValueError
        If the kind is unknown or the value damaged.
    """
    system = kind_of_attribute(kind)
    if not system:
        expected = " or ".join(name for row in ROWS for name in row.layout_attributes)
        raise ValueError(f"layout attribute {kind!r}; expected {expected}")
    text_end = b"\0" if system == "ceph" else b""
    try:
        unit, count, targets, pool = _native.read_layout(value.removesuffix(text_end))
    except ValueError as error:
        raise ValueError(
            f"{kind} of {len(value)} bytes beginning with {value[:4].hex()}: {error}"
        ) from None
    if count in (0, _ALL):  # 0: the default of the directory
        count = len(targets) or (1 if count == 0 else 0)
    return Layout(system, unit, count, tuple(targets[:count]), pool)
