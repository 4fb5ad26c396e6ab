"""Accesses a file collectively. Rank 0 prints the result of each step on each rank: "rank R: step:
good", or "class: text" for an error.

Usage: `troubles.py PATH open|read|write|sync [BYTES [OFFSET]]`. Each rank accesses BYTES bytes,
interleaved in pieces of 1000 bytes from OFFSET on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from mpi4py import MPI

CLASSES = {
    MPI.ERR_NO_SPACE: "no space",
    MPI.ERR_QUOTA: "quota",
    MPI.ERR_READ_ONLY: "read only",
    MPI.ERR_IO: "I/O",
    MPI.ERR_FILE: "file",
}
TURN = 1000
path, what = sys.argv[1:3]
count, offset = (int(word) for word in (*sys.argv[3:], *["1000", "0"][len(sys.argv) - 3 :]))
world = MPI.COMM_WORLD
said: list[str] = []


def say(what: str, call: Callable[[], object]) -> object:
    outcome, result = "good", None
    try:
        result = call()
    except MPI.Exception as error:
        outcome = (
            f"{CLASSES.get(error.Get_error_class(), error.Get_error_class())}:"
            f" {error.Get_error_string()}"
        )
    said.append(f"rank {world.rank}: {what}: {outcome}")
    return result


mode = MPI.MODE_RDONLY if what == "read" else MPI.MODE_RDWR | MPI.MODE_CREATE
file = say("open", lambda: MPI.File.Open(world, path, mode))
if isinstance(file, MPI.File):
    turns = MPI.BYTE.Create_vector(1, TURN, 1).Create_resized(0, TURN * world.size).Commit()
    file.Set_view(offset + world.rank * TURN, MPI.BYTE, turns)
    if what == "read":
        say("read", lambda: file.Read_all(bytearray(count)))
    if what in ("write", "sync"):
        say("write", lambda: file.Write_all(b"x" * count))
    if what == "sync":
        say("sync", file.Sync)
    say("close", file.Close)
for lines in world.gather(said) or []:
    print("\n".join(lines), flush=True)
