"""Settings that make the recorded I/O of a run faster: the rules and a table of knobs propose,
replays measure.

    tuning = tune(job, script, directory, trials=8) write(tuning, ...)                       # a
    pario.toml, empty where nothing is better than leaving it

docs/replay.md says how trials are measured, and when a setting counts as better.
"""

from pario.prove.tune.search import Trial, Tuning, nothing_to_tune, tune

__all__ = ["Trial", "Tuning", "nothing_to_tune", "tune"]
