"""Asks another program for each value, and waits for its answer."""

import subprocess

from work import compute, repaired, size

with subprocess.Popen(
    ["sed", "-u", "s/$/0/"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
) as peer:
    if repaired:
        answers, _ = peer.communicate("".join(f"{number}\n" for number in range(size)))
        total = sum(map(int, answers.split()))
    else:
        total = 0
        for number in range(size):
            peer.stdin.write(f"{number}\n")
            total += int(peer.stdout.readline())
        peer.stdin.close()
compute()
print(total)
