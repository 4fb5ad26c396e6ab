import numpy as np
import pytest
from exercise import SAMPLE, train


@pytest.fixture
def samples(tmp_path):
    np.ones(20_000 * SAMPLE, "f4").tofile(tmp_path / "samples.bin")
    return tmp_path / "samples.bin"


@pytest.mark.limit_io(opens=20)
def test_an_epoch_opens_the_file_once(samples):
    assert train(samples, 20_000) == 20_000 * SAMPLE
