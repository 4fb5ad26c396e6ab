"""Ways of doing I/O compared on the user's own file system.

Patterns of parallel programs: ``patterns`` (their code, run by MPI ranks), ``table`` (their names),
``array`` (the array that they write, and who has which block), ``worker`` (``python -m
pario.prove.bench.worker``: what every rank runs), ``results`` (medians, spread, JSON), ``launch``
(starts the ranks). S3D's checkpoint: ``s3d`` (what every rank runs), ``s3d_counts``, ``s3d_table``.
The calls of one process: ``ways`` (measured natively), ``verdicts`` (what the rates say, in words).
``calibrate``: the parameters of the cost model. ``history``: results that are kept and compared.
"""
