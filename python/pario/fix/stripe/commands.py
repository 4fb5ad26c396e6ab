"""Command lines that set stripes with each file system's own tools, for machines without pario."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping

from pario import wording
from pario.fix.stripe.layout import ALL, TO_THE_END, Part, Wanted

_UNITS = ((1 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K"))


def commands(kind: str, path: str, directory: bool, wanted: Wanted) -> list[str]:
    """Return command lines for the shell; none for a file system whose stripes cannot be set."""
    write = _WRITERS.get(kind)
    return write(path, directory, wanted) if write else []


def _lustre(path: str, directory: bool, wanted: Wanted) -> list[str]:
    composite = len(wanted.parts) > 1
    options = (word for part in wanted.parts for word in _lfs(part, composite))
    return [shlex.join(["lfs", "setstripe", *options, path])]


def _ceph(path: str, directory: bool, wanted: Wanted) -> list[str]:
    return [
        *([] if directory else [shlex.join(["touch", path])]),
        _setfattr(path, directory, wanted.parts[0], wanted.object_size),
    ]


def _beegfs(path: str, directory: bool, wanted: Wanted) -> list[str]:
    part = wanted.parts[0]
    options = [
        "--setpattern" if directory else "--createfile",
        *([f"--numtargets={part.count}"] if part.count else []),
        *([f"--chunksize={short(part.unit).lower()}"] if part.unit else []),
    ]
    return [shlex.join(["beegfs-ctl", *options, path])]


_WRITERS: Mapping[str, Callable[[str, bool, Wanted], list[str]]] = {
    "lustre": _lustre,
    "ceph": _ceph,
    "beegfs": _beegfs,
}


def _lfs(part: Part, composite: bool) -> Iterator[str]:
    if composite:
        yield from ("-E", "-1" if part.end == TO_THE_END else short(part.end))
    if part.targets:
        yield from ("-o", ",".join(map(str, part.targets)))
    elif part.count:
        yield from (
            "-C" if part.overstriped else "-c",
            "-1" if part.count == ALL else str(part.count),
        )
    if part.unit:
        yield from ("-S", short(part.unit))
    if part.start >= 0 and not part.targets:
        yield from ("-i", str(part.start))
    if part.pool:
        yield from ("-p", part.pool)


def _setfattr(path: str, directory: bool, part: Part, object_size: int) -> str:
    unit = part.unit or 4 << 20
    words = [
        f"stripe_unit={unit}",
        f"stripe_count={part.count or 1}",
        f"object_size={object_size or -(-(4 << 20) // unit) * unit}",
    ]
    value = " ".join(words + ([f"pool={part.pool}"] if part.pool else []))
    return shlex.join(
        [
            "setfattr",
            "-n",
            "ceph.dir.layout" if directory else "ceph.file.layout",
            "-v",
            value,
            path,
        ]
    )


def short(size: int) -> str:
    """A size as command lines write it, such as ``4M``."""
    for factor, unit in _UNITS:
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def hints(part: Part) -> str:
    """The stripes as ``--hint`` options of ``pario run``."""
    pairs = [
        ("striping_factor", str(part.count) if part.count else ""),
        ("striping_unit", short(part.unit) if part.unit else ""),
    ]
    return " ".join(f"--hint {key}={value}" for key, value in pairs if value)


def size_of(text: str) -> int:
    """The bytes of ``64K``, ``4M``, ``1.5G``, ``189GB`` (powers of 1024, as in all of pario's
    command lines). Raises ValueError for other texts."""
    digits = text.strip().upper().removesuffix("IB").removesuffix("B")
    factor = next((factor for factor, unit in _UNITS if digits.endswith(unit)), 1)
    number = float(digits[:-1] if factor > 1 else digits)
    if not 0 <= number * factor < 2**63:
        raise ValueError(
            f"{text}; expected a size such as {wording.block(4 << 20).replace(' ', '')}"
        )
    return int(number * factor)
