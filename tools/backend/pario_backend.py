"""The build backend: that of scikit-build-core, behind a check of the Python that runs it.

pip reads the supported versions of Python only after it has installed the requirements of a build,
which fails under an older Python by a message on one of them. Therefore pyproject.toml has none for
such a Python. This file keeps to the syntax of Python 3.6.
"""

import os
import sys

if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit(
        "pario needs Python 3.11 or later, this is {}.{}: run pip of a newer one, for example"
        " python3.11 -m pip install .".format(*sys.version_info)
    )

from scikit_build_core.build import *  # noqa: F403

# pip finds this file by these variables. A pip that CMake starts for the sources of zstd would look
# for the backend of zstandard there.
for variable in ("PEP517_BACKEND_PATH", "_PYPROJECT_HOOKS_BACKEND_PATH"):
    os.environ.pop(variable, None)
