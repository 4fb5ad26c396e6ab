"""A pytest plugin with limits for the I/O of a test: ``@pytest.mark.limit_io(writes=20)``."""
