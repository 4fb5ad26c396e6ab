"""Arrays that are kept in a file beside the facts for which they hold."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pario.errors import ParioError
from pario.publishing import replacing

if TYPE_CHECKING:
    from numpy.typing import NDArray


def load_arrays(place: Path, facts: list[str]) -> dict[str, NDArray[Any]] | None:
    """The kept arrays by name; None if there are none, or they hold for other facts."""
    import numpy as np

    try:
        with np.load(place, allow_pickle=False) as saved:
            return dict(saved) if saved["facts"].tolist() == facts else None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def save_arrays(place: Path, facts: list[str], **arrays: NDArray[Any]) -> int:
    """Keeps arrays. Returns the size of the file; 0 if it cannot be written."""
    import numpy as np

    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with replacing(place, durable=False) as file:
            np.savez(file, facts=np.array(facts), **arrays)  # type: ignore[arg-type]
        return place.stat().st_size
    except (OSError, ParioError):
        return 0
