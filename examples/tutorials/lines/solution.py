"""Writes the residual of each step of a solver to a log, a mebibyte at a time."""

import sys


def write_log(path, steps):
    with open(path, "w", buffering=1 << 20) as log:
        for step in range(steps):
            print(f"step {step}: residual {1 / (step + 1):.6f}", file=log)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FILE")
    write_log(sys.argv[1], 200_000)
