"""Searches settings that make the recorded I/O of a run faster: rules and a table of knobs propose
them, replays measure them.

    tuning = tune(job, directory, measurement(script, directory, mpiexec, pauses), 8, tell)
    tuning.choice.proposals()  # for a pario.toml; empty if no setting is better

docs/replay.md describes the trials, and when a setting counts as better.
"""

from pario.prove.tune.search import Trial, Tuning, nothing_to_tune, tune

__all__ = ["Trial", "Tuning", "nothing_to_tune", "tune"]
