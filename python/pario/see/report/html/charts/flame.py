"""I/O flame graph: the call stacks of the program's I/O, as wide as their seconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pario import wording
from pario.see.analyze.model import StackRow

#: Narrower boxes, in per cent of the whole, deeper ones and all but the widest are left out.
_LEAST, _DEEPEST, _MOST = 0.1, 40, 2000


@dataclass(frozen=True)
class Box:
    """A frame with the frames that it calls above it; ``left`` and ``width`` in per cent."""

    left: float
    width: float
    depth: int  # 0: outermost
    text: str
    tip: str
    function: bool  # the traced function itself


@dataclass(frozen=True)
class FlameGraph:
    """All boxes, and the number of their rows."""

    boxes: tuple[Box, ...]
    rows: int
    seconds: float


@dataclass
class _Node:
    seconds: float = 0.0
    calls: int = 0
    inner: dict[str, _Node] = field(default_factory=dict)


def flame_graph(stacks: Sequence[StackRow]) -> FlameGraph | None:
    """Return the graph of stacks; None without seconds."""
    root = _Node()
    for stack in stacks:
        node = root
        for frame in ("all I/O", *stack.frames[: _DEEPEST - 1]):
            node = node.inner.setdefault(frame, _Node())
            node.seconds += stack.seconds
            node.calls += stack.calls
    whole = sum(node.seconds for node in root.inner.values())
    if whole <= 0:
        return None
    boxes = sorted(_boxes(root, whole, 0.0, 0), key=lambda box: (-box.width, box.depth))[:_MOST]
    return FlameGraph(tuple(boxes), max(box.depth for box in boxes) + 1, whole)


def _boxes(node: _Node, whole: float, left: float, depth: int) -> Iterator[Box]:
    """Yield the boxes above a node, the widest first."""
    for text, inner in sorted(node.inner.items(), key=lambda item: -item[1].seconds):
        width = 100 * inner.seconds / whole
        if width >= _LEAST:
            tip = (
                f"{text}: {wording.seconds(inner.seconds)}, {wording.share(width / 100)},"
                f" {wording.plural(inner.calls, 'call')}"
            )
            yield Box(left, width, depth, text, tip, function=not inner.inner)
            yield from _boxes(inner, whole, left, depth + 1)
            left += width
