"""PyTorch's distributed checkpoints (``torch.distributed.checkpoint``) in the files of pario.

``dcp.save(state, storage_writer=Writer(path))`` saves a checkpoint as ``save_state_dict`` does:
each tensor is an array, and ``state.json`` describes the state. So ``dcp.load`` with
:class:`Reader` loads the checkpoints of ``save_state_dict``, and ``load_state_dict`` those of
``dcp.save``. :func:`replace_file_system_storage` does so for libraries that choose the storage.
"""

from pario.checkpoint.dcp.reader import Reader
from pario.checkpoint.dcp.replacement import replace_file_system_storage
from pario.checkpoint.dcp.writer import Writer

__all__ = ["Reader", "Writer", "replace_file_system_storage"]
