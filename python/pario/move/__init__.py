"""Move files: pack and unpack archives, merge HDF5 files, stage files on a node."""
