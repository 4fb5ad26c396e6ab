"""The lab, a striped file system (FUSE) for experiments: mount, query and unmount it. docs/lab.md
describes its model."""
