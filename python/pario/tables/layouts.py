"""Striped layouts of files from the raw attributes that file systems give: Lustre's ``lustre.lov``, CephFS's layout text."""

from __future__ import annotations

from pario import _native
from pario.tables.model import Layout

_KINDS = {"lustre.lov": "lustre", "ceph.file.layout": "ceph", "ceph.dir.layout": "ceph"}
_ALL = 0xFFFF  # as a number of stripes: as many as there are targets


def parse_layout(kind: str, value: bytes) -> Layout:
    """The layout in an extended attribute.

    Of a composite file of Lustre it is that of the last striped component that has objects: where the file has grown to.

    Parameters
    ----------
    kind : str
        Name of the attribute: lustre.lov, ceph.file.layout or ceph.dir.layout.
    value : bytes
        The attribute as the file system gave it.

    Raises
    ------
    ValueError
        Names the kind, or the damage of the value.
    """
    if kind not in _KINDS:
        raise ValueError(f"layout attribute {kind!r}; expected lustre.lov, ceph.file.layout or ceph.dir.layout")
    text_end = b"\0" if _KINDS[kind] == "ceph" else b""
    try:
        unit, count, targets, pool = _native.read_layout(value.removesuffix(text_end))
    except ValueError as error:
        raise ValueError(f"{kind} of {len(value)} bytes beginning with {value[:4].hex()}: {error}") from None
    if count in (0, _ALL):  # 0: the default of the directory
        count = len(targets) or (1 if count == 0 else 0)
    return Layout(_KINDS[kind], unit, count, tuple(targets[:count]), pool)
