import subprocess
import sys

import numpy as np
import pytest


@pytest.mark.limit_io(writes=20)
def test_ranks_write_in_few_calls(tmp_path):
    path = tmp_path / "array.bin"
    program = [sys.executable, "exercise.py", str(path), "50_000"]
    subprocess.run(["mpiexec", "-n", "2", *program], check=True)
    array = np.fromfile(path).reshape(50_000, 64)
    assert (array[:, :32] == 0).all()
    assert (array[:, 32:] == 1).all()
