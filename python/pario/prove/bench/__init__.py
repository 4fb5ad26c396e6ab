"""Benchmarks that compare ways of doing I/O on the user's own file system.

Patterns of parallel programs: ``patterns`` (their code, run by MPI ranks), ``table`` (their names),
``array`` (the array that they write, and its blocks), ``worker`` (``python -m
pario.prove.bench.worker``, the program of every rank), ``results`` (medians, spread, JSON),
``launch`` (starts the ranks). S3D's checkpoint: ``s3d`` (the program of every rank),
``s3d_counts``, ``s3d_table``. The calls of one process: ``ways`` (measured natively), ``verdicts``
(conclusions from the rates, in words). ``calibrate``: the parameters of the cost model.
``history``: stored results and their comparison.
"""
