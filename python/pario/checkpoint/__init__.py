"""Checkpoints of distributed arrays (docs/checkpoint.md).

A checkpoint is one HDF5 file that every program reads, or several. It is saved by all ranks
together, and loaded on any number of ranks in any decomposition.
"""

from pario.checkpoint.arrays import block, blocks, per_rank, replicated
from pario.checkpoint.background import Pending
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import divide
from pario.checkpoint.reader import State, load
from pario.checkpoint.retention import Keep
from pario.checkpoint.safetensors_files import read_safetensors, write_safetensors
from pario.checkpoint.states import load_state_dict, save_state_dict
from pario.checkpoint.writer import Writer

__all__ = [
    "CheckpointError",
    "Keep",
    "Pending",
    "State",
    "Writer",
    "block",
    "blocks",
    "divide",
    "load",
    "load_state_dict",
    "per_rank",
    "read_safetensors",
    "replicated",
    "save_state_dict",
    "write_safetensors",
]
