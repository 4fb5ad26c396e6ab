"""The tables of the report and of the comparison, for every renderer."""
