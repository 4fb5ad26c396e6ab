import pytest
from exercise import write_log


@pytest.mark.limit_io(writes=20)
def test_log_is_written_in_few_calls(tmp_path):
    write_log(tmp_path / "solver.log", 100_000)
    lines = (tmp_path / "solver.log").read_text().splitlines()
    assert lines[99_999] == "step 99999: residual 0.000010"
    assert len(lines) == 100_000
