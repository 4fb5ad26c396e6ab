"""Charts of the bytes of ranks on the storage targets of a file."""

from __future__ import annotations

from markupsafe import Markup

from pario import wording
from pario.see.analyze.model import Contention
from pario.see.report import svg
from pario.see.report.html.charts.chart import Chart, bands, linear

COLOUR: svg.Colour = (214, 77, 38)


def heat_map(contention: Contention, number: int) -> Chart:
    """Return a heat map of ranks × targets, coloured by bytes."""
    high = max((max(row, default=0) for row in contention.bytes), default=0) or 1
    pixels = bytes(
        svg.pixel(0, max(0.01, value / high) if value else 0.0)
        for row in contention.bytes
        for value in row
    )
    return Chart(
        id=f"contention-{number}",
        title=f"Bytes of each rank on each {contention.unit}",
        summary=(
            f"Heat map of bytes, at most {wording.size(high)} per cell; arrow keys read its cells"
        ),
        x=bands(contention.unit, contention.targets, 8),
        y=bands("", contention.ranks, 16),
        body=svg.picture(pixels, len(contention.targets), [COLOUR]),
        columns=len(contention.targets),
        rows=len(contention.ranks),
        height=max(96, min(22 * len(contention.ranks), 360)),
        kind="grid",
        grid=False,
    )


def totals(contention: Contention, number: int) -> Chart:
    """Return bytes per target, of all ranks together, which show an overloaded target."""
    sums = [sum(row[index] for row in contention.bytes) for index in range(len(contention.targets))]
    axis, high = linear("all ranks", max(sums, default=0), wording.size, most=3)
    tips = [
        f"{name}: {wording.size(total)} from {wording.plural(ranks, 'rank')}"
        for name, total, ranks in zip(
            contention.targets, sums, contention.ranks_per_target, strict=True
        )
    ]
    shapes = [
        svg.box(
            "write", index + 0.1, 100 - 100 * total / high, 0.8, 100 * total / high, tips[index]
        )
        for index, total in enumerate(sums)
    ]
    return Chart(
        id=f"targets-{number}",
        title=f"Bytes on each {contention.unit}",
        summary="; ".join(tips[:64]),
        x=bands(contention.unit, contention.targets, 8),
        y=axis,
        body=Markup("").join(shapes),
        columns=len(contention.targets),
        rows=100,
        height=110,
    )


def data(contention: Contention) -> dict[str, object]:
    """Return the values that the script shows on hover."""
    return {"columns": contention.targets, "rows": contention.ranks, "bytes": contention.bytes}
