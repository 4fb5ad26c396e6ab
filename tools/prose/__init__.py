"""The language check of comments, documentation, names and commit subjects.

``python -m tools.prose`` compares the findings of each rule with its limit in ``limits.toml``.
"""
