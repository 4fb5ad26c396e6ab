import numpy as np
import pytest
from exercise import load, save


@pytest.mark.limit_io(syncs=10, writes=100)
def test_a_checkpoint_is_flushed_once(tmp_path):
    state = {name: np.ones((200, 500)) for name in ("density", "energy", "momentum")}
    save(tmp_path, 7, state)
    assert (load(tmp_path, 7, "energy", (200, 500)) == 1).all()
