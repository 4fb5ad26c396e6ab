"""The base of all errors that a user can cause and should read."""


class ParioError(Exception):
    """Something the user can put right. The text names the thing, its value and what was expected; the CLI prints it and exits with 2."""
