"""pario: see why a program's I/O is slow, fix it without changing the program, and prove it."""
