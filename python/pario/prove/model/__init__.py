"""The cost of I/O on described machines: machines, their loads, and published figures to compare
with."""
