"""Arrays that are kept in a file or an object beside the facts for which they hold."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pario import objects
from pario.errors import ParioError
from pario.objects import is_url
from pario.publishing import replacing
from pario.state import cache_folder

if TYPE_CHECKING:
    from numpy.typing import NDArray


def cache_path(kind: str, path: str, ending: str, part: str = "") -> Path:
    """The file in the cache for a file or an object, and for a ``part`` of its facts."""
    whole = os.fsencode(path if is_url(path) else os.path.realpath(path))
    key = whole + b"\0" + part.encode() if part else whole
    return cache_folder(kind) / (hashlib.sha256(key).hexdigest()[:32] + ending)


def load_arrays(place: str | Path, facts: list[str], *names: str) -> dict[str, NDArray[Any]] | None:
    """The kept arrays with these names; None if there are none, they are damaged, or they hold for
    other facts."""
    import numpy as np

    try:
        source = io.BytesIO(objects.read(str(place))) if is_url(place) else place
        with np.load(source, allow_pickle=False) as saved:
            if saved["facts"].tolist() == facts:
                return {name: saved[name] for name in names}
    except Exception:  # of zipfile and numpy, for damaged files of any kind
        pass
    return None


def save_arrays(place: str | Path, facts: list[str], **arrays: NDArray[Any]) -> int:
    """Keeps arrays. Returns the size of the file or object; 0 if it cannot be written."""
    import numpy as np

    try:
        if is_url(place):
            content = io.BytesIO()
            np.savez(content, facts=np.array(facts), **arrays)  # type: ignore[arg-type]
            objects.write(str(place), content.getvalue())
            return content.tell()
        place = Path(place)
        place.parent.mkdir(parents=True, exist_ok=True)
        with replacing(place, durable=False) as file:
            np.savez(file, facts=np.array(facts), **arrays)  # type: ignore[arg-type]
        return place.stat().st_size
    except (OSError, ParioError):
        return 0
