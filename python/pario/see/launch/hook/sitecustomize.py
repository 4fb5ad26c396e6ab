"""Python imports this before the program, because `pario run` puts its directory into PYTHONPATH;
it steps aside for the real one."""

import os
import sys

_here = os.path.dirname(__file__)  # noqa: PTH120
if sys.version_info >= (3, 8):  # noqa: UP036  of the program, whatever pario's is
    try:
        import pario_meter

        pario_meter.start()
    except Exception:  # the program comes first
        pass
sys.path[:] = [entry for entry in sys.path if entry != _here]
sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: E402, F401  of the user or the system; where there is none, Python passes over the error
