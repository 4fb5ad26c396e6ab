"""Commits each row of a measurement to SQLite on its own."""

import sqlite3

from work import compute, repaired, size

database = sqlite3.connect("measurements.db")
database.execute("CREATE TABLE samples (number INTEGER, value REAL)")
for number in range(size):
    database.execute("INSERT INTO samples VALUES (?, ?)", (number, number / 7))
    if not repaired:
        database.commit()
database.commit()
compute()
print(database.execute("SELECT count(*), sum(number) FROM samples").fetchone())
