"""The names and descriptions of the access patterns; their code is in ``patterns``, which needs
mpi4py."""

PATTERNS = {
    "one": "one rank for all",
    "one-text": "one rank for all, as text",
    "files": "a file per process",
    "files-text": "a file per process, as text",
    "independent": "one file, each contiguous piece by itself",
    "sieved": "one file, independently through a view",
    "collective": "one file, collectively through a view",
    "groups-files": "a file per group, by its first rank",
    "groups-one": "one file, by the groups' first ranks",
    "groups-together": "a file per group, collectively",
}
