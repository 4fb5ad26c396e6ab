"""Starts the measurement of loaders: Python imports this module before the program, because
`pario run` puts its directory into PYTHONPATH. Then it imports the real sitecustomize."""

import os
import sys

_here = os.path.dirname(__file__)  # noqa: PTH120
if sys.version_info >= (3, 8):  # noqa: UP036  the program's Python may be older than pario's
    try:
        import pario_meter

        pario_meter.start()
    except Exception:  # the program must start in any case
        pass
sys.path[:] = [entry for entry in sys.path if entry != _here]
sys.modules.pop("sitecustomize", None)
# That of the user or of the system; Python ignores the error if there is none.
import sitecustomize  # noqa: E402, F401
