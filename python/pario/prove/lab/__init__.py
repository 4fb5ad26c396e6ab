"""A striped file system of our own (FUSE), for trying things: started, asked, ended. docs/lab.md
says what it models."""
