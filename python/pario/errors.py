"""The base class of the errors that a user can correct."""


class ParioError(Exception):
    """An error that the user can correct. Its text names the thing, its value and the expected
    value; commands print it and exit with status 2."""
