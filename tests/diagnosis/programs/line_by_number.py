"""Looks a line up by its number, with a pass over the file for each."""

from pathlib import Path

from work import compute, repaired, size


def find_line(number: int) -> str:
    with Path("lines.txt").open() as file:
        for place, line in enumerate(file):
            if place == number:
                return line
    return ""


lines = Path("lines.txt").read_text().splitlines(keepends=True) if repaired else []
total = 0
for number in range(size):
    wanted = number * 37 % 40
    total += len(lines[wanted] if repaired else find_line(wanted))
compute()
print(size, "lines,", total, "characters")
