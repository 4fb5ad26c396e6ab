"""Opens the archive again for each member that it reads."""

import zipfile

from work import compute, repaired, size

total = 0
if repaired:
    with zipfile.ZipFile("members.zip") as archive:
        for number in range(size):
            total += len(archive.read(f"member{number:05d}"))
else:
    for number in range(size):
        with zipfile.ZipFile("members.zip") as archive:
            total += len(archive.read(f"member{number:05d}"))
compute()
print(size, "members,", total, "bytes")
