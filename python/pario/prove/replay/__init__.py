"""Replays the recorded I/O of a run without the program.

    script = script_of(job)  # the operations of each process; ReplayError: the log lacks some
    performance = perform(script, directory)  # with as many processes, under pario's library
    fidelity(job, script, performance)  # calls, bytes and seconds of both

docs/replay.md lists the differences between a replay and its run.
"""

from pario.prove.replay.errors import ReplayError
from pario.prove.replay.fidelity import Fidelity, fidelity
from pario.prove.replay.perform import Performance, perform
from pario.prove.replay.plan import script_of
from pario.prove.replay.script import Script

__all__ = ["Fidelity", "Performance", "ReplayError", "Script", "fidelity", "perform", "script_of"]
