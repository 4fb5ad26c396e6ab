"""Tools for the development of pario; each is run as `python -m tools.NAME`."""
