"""Workers that try again and again to lock a ledger, each of them for its whole task."""

import fcntl
import os
import time
from pathlib import Path

from work import compute, repaired, size

LEDGER = Path("ledger.txt")
WORKERS = 3


def lock(file):
    while True:
        try:
            return fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(0.005)


def work_on(task):
    with LEDGER.open("a") as file:
        lock(file)
        time.sleep(0.02)  # the task waits for a device
        compute(20_000)
        file.write(f"{task}\n")


def work_on_all(tasks):
    for _ in tasks:
        compute(20_000)
    time.sleep(0.02)
    with LEDGER.open("a") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        file.writelines(f"{task}\n" for task in tasks)


children = []
for _ in range(WORKERS):
    child = os.fork()
    if child == 0:
        if repaired:
            work_on_all(range(size))
        else:
            for task in range(size):
                work_on(task)
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
compute()
print(len(LEDGER.read_text().splitlines()), "tasks")
