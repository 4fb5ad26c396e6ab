"""Searches settings that make the recorded I/O of a run faster: rules and a table of knobs propose
remedies, replays measure them.

    plan = plan_measurement(...)  # remedies of findings, within seconds: pario advise
    plan = plan_tuning(...)  # more settings, within a number of replays: pario tune
    measured = measure(plan, player(plan, mpiexec, limits))

docs/replay.md describes the replays, and when a setting counts as better.
"""
