"""The recorded I/O of a run performed again, without the program.

    script = script_of(job)                  # what each process does, in order; raises ReplayError
    where the log does not hold that performance = perform(script, directory) # does it there, with
    as many processes, under pario's library fidelity(job, script, performance)       # calls, bytes
    and seconds of both

docs/replay.md says what is the same as in the run and what is not.
"""

from pario.prove.replay.errors import ReplayError
from pario.prove.replay.fidelity import Fidelity, fidelity
from pario.prove.replay.perform import Performance, perform
from pario.prove.replay.plan import script_of
from pario.prove.replay.script import Script

__all__ = ["Fidelity", "Performance", "ReplayError", "Script", "fidelity", "perform", "script_of"]
