"""What I/O costs on machines that are only described: machines, what is asked of them, and
published figures to compare with."""
