"""Change the files of programs: choose and apply stripes."""
