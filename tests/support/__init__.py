"""Helpers of all tests: waiting, running commands, describing processes, limits of tests."""
