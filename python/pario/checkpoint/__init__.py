"""Checkpoints of distributed arrays: one HDF5 file that everything reads, saved and loaded on any number of ranks (docs/checkpoint.md)."""

from pario.checkpoint.background import Pending
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import divide
from pario.checkpoint.given import block, blocks, per_rank, replicated
from pario.checkpoint.reader import State, load
from pario.checkpoint.safetensors import read_safetensors, write_safetensors
from pario.checkpoint.tensors import load_state_dict, save_state_dict
from pario.checkpoint.writer import Writer

__all__ = [
    "CheckpointError",
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
