import numpy as np
import pytest
from exercise import add_up, save_samples


@pytest.mark.limit_io(files=20, opens=20)
def test_samples_are_in_few_files(tmp_path):
    save_samples(tmp_path, np.ones((12_000, 32)))
    assert add_up(tmp_path) == 12_000 * 32
