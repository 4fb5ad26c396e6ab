"""Observe programs: start and trace them, read logs, analyse and report runs."""
