"""The processes of JAX as ranks. Their messages lie in the store of ``jax.distributed``, which
needs no accelerator, and does not wait for the program's own collective calls."""

from __future__ import annotations

from typing import Any

import jax

from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.store_ranks import Meeting, StoreRanks
from pario.ranks import OneRank, Ranks

_NOT_FOUND = "NOT_FOUND"
#: The processes as ranks, by purpose.
_known: dict[str, Ranks] = {}


class JaxStore:
    """The store of ``jax.distributed``."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def count(self, key: str) -> int:
        """Adds 1 to a number."""
        return int(self._client.key_value_increment(key, 1))

    def put(self, key: str, value: bytes) -> None:
        """Stores an entry."""
        self._client.key_value_set_bytes(key, value)

    def take(self, key: str) -> bytes | None:
        """Removes and returns an entry; None if there is none."""
        try:
            found: bytes = self._client.key_value_try_get_bytes(key)
        except jax.errors.JaxRuntimeError as error:
            if _NOT_FOUND in str(error):
                return None
            raise
        self._client.key_value_delete(key)
        return found


def processes_of_jax(purpose: str, patience: float) -> Ranks:
    """The processes of ``jax.distributed``, by ``jax.process_index()``; this process alone where it
    is not initialized. Collective the first time.

    ``purpose``: threads that make collective calls at the same time give different ones.
    """
    if jax.process_count() == 1:
        return OneRank()
    if purpose not in _known:
        client = jax._src.distributed.global_state.client  # JAX has no public name for it
        if client is None:
            raise CheckpointError(
                f"{jax.process_count()} processes; expected jax.distributed.initialize() before"
            )
        store = JaxStore(client)
        meeting = Meeting(f"jax/{purpose}", jax.process_index(), jax.process_count(), store)
        _known[purpose] = StoreRanks(meeting, patience)
    _known[purpose].patience = patience
    return _known[purpose]
