"""Striped layouts of files from the raw attributes that file systems give: Lustre's ``lustre.lov`` and CephFS's layout text."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from pario.tables.model import Layout

_V1, _V3, _SPECIFIC, _COMPOSITE = 0x0BD10BD0, 0x0BD30BD0, 0x0BD50BD0, 0x0BD60BD0
_MD = struct.Struct("<II16xIHH")  # magic, pattern, stripe size, stripe count, first OST or generation
_POOL_SIZE = 16
_OBJECT = struct.Struct("<16xII")  # generation, OST
_COMPOSITE_HEAD = struct.Struct("<IIIHHH14x")  # magic, size, generation, flags, entries, mirrors
_ENTRY = struct.Struct("<IIQQII16x")  # id, flags, start, end, offset, size
_INITIALISED = 0x10  # LCME_FL_INIT: the component has objects
_ON_MDT = 0x100  # LOV_PATTERN_MDT: data on the metadata server
_ALL = 0xFFFF


def parse_layout(kind: str, value: bytes) -> Layout:
    """The layout in an extended attribute named ``kind``. Raises ValueError naming what is wrong."""
    if kind == "lustre.lov":
        return _lustre(value)
    if kind in ("ceph.file.layout", "ceph.dir.layout"):
        return _ceph(value.rstrip(b"\0").decode())
    raise ValueError(f"layout attribute {kind!r}; expected lustre.lov, ceph.file.layout or ceph.dir.layout")


def _lustre(value: bytes) -> Layout:
    magic = int.from_bytes(value[:4], "little")
    if magic in (_V1, _V3, _SPECIFIC):
        return _plain(value)
    if magic == _COMPOSITE:
        return _composite(value)
    raise ValueError(f"lustre.lov of magic {magic:#010x} and {len(value)} bytes; expected 0x0bd10bd0, 0x0bd30bd0, 0x0bd50bd0 or 0x0bd60bd0")


def _plain(value: bytes) -> Layout:
    _require(len(value) >= _MD.size, f"lustre.lov of {len(value)} bytes; expected at least {_MD.size}")
    magic, _, size, count, _ = _MD.unpack_from(value)
    pool = "" if magic == _V1 else value[_MD.size : _MD.size + _POOL_SIZE].rstrip(b"\0").decode("utf-8", "backslashreplace")
    objects = value[_MD.size + (0 if magic == _V1 else _POOL_SIZE) :]
    whole = len(objects) // _OBJECT.size * _OBJECT.size
    targets = tuple(target for _, target in _OBJECT.iter_unpack(objects[:whole]))
    if count in (0, _ALL):  # 0: the default, all ones: as many as there are
        count = len(targets) or (1 if count == 0 else 0)
    return Layout("lustre", size, count, targets[:count], pool)


@dataclass(frozen=True)
class _Component:
    flags: int
    start: int
    value: bytes

    @property
    def on_mdt(self) -> bool:
        return bool(int.from_bytes(self.value[4:8], "little") & _ON_MDT)


def _composite(value: bytes) -> Layout:
    """The layout of the last component that has objects: where a file grows, and where most of a large one lies."""
    components = list(_components(value))
    _require(bool(components), "lustre.lov of a composite file without components; expected one at least")
    striped = [c for c in components if not c.on_mdt] or components
    return _plain(max((c for c in striped if c.flags & _INITIALISED), key=lambda c: c.start, default=striped[0]).value)


def _components(value: bytes) -> list[_Component]:
    _require(len(value) >= _COMPOSITE_HEAD.size, f"composite lustre.lov of {len(value)} bytes; expected at least {_COMPOSITE_HEAD.size}")
    entries = _COMPOSITE_HEAD.unpack_from(value)[4]
    _require(
        _COMPOSITE_HEAD.size + entries * _ENTRY.size <= len(value),
        f"composite lustre.lov of {len(value)} bytes is too short for {entries} entries",
    )
    found = []
    for i in range(entries):
        _, flags, start, _, offset, size = _ENTRY.unpack_from(value, _COMPOSITE_HEAD.size + i * _ENTRY.size)
        found.append(_Component(flags, start, value[offset : offset + size]))
    return found


def _ceph(text: str) -> Layout:
    fields = dict(part.split("=", 1) for part in text.split() if "=" in part)
    try:
        return Layout("ceph", int(fields["stripe_unit"]), int(fields["stripe_count"]), (), fields.get("pool", ""))
    except KeyError as missing:
        raise ValueError(f"ceph layout {text!r}; expected {missing.args[0]}=...") from None


def _require(condition: bool, text: str) -> None:
    if not condition:
        raise ValueError(text)
