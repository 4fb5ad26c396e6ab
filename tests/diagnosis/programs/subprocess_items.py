"""Starts a program for each item to count its characters."""

import subprocess

from work import compute, repaired, size

total = 0
for number in range(size):
    word = f"item{number}"
    if repaired:
        total += len(word)
    else:
        done = subprocess.run(["wc", "-c"], input=word.encode(), capture_output=True, check=True)
        total += int(done.stdout)
compute()
print(total, "characters")
