"""Orbax's checkpoints with their arrays in files of pario.

After ``register()`` the program's own code of Orbax saves arrays of JAX and numpy, and numbers, as
pario's checkpoints: all processes write one HDF5 file, with checksums. Orbax keeps the structure of
the state, strings, and the names and the number of its checkpoints.
"""

from pario.checkpoint.orbax.handlers import register

__all__ = ["register"]
