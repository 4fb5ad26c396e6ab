"""Fits the parameters of described machines to published figures.

Writes them into python/pario/prove/model/machines/*.toml.
"""

from __future__ import annotations

import re
import sys

from pario.prove.model.fit import fit
from pario.prove.model.machine import load, names, path_of


def main() -> None:
    for name in sys.argv[1:] or names():
        machine = load(name)
        found = fit(machine) if machine.fitted else machine
        text = path_of(name).read_text(encoding="utf-8")
        for key in machine.fitted:
            text = re.sub(
                rf"(?m)^({key} = {{ value = )[^,]+", rf"\g<1>{found.values[key]:.4g}", text
            )
            print(f"{name}: {key} = {found.values[key]:.4g}")
        path_of(name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
