"""Calls from Python, and from native code that Python calls, for test_call_sites.py."""

import ctypes
import os
import shutil
import sys
import threading


def save(path: str, times: int) -> None:
    file = os.open(path, os.O_CREAT | os.O_WRONLY)
    for _ in range(times):
        os.write(file, b"x" * 10)  # mark: python
    os.close(file)


def save_from_native_code(library: str, path: str) -> None:
    ctypes.CDLL(library).save(path.encode(), 25)  # mark: extension-caller


def copy(path: str) -> None:
    shutil.copyfile(path, path + ".copy")  # mark: copy


native, target = sys.argv[1:]
save(target, 20)
worker = threading.Thread(target=save, args=(target, 30))
worker.start()
worker.join()
copy(target)
save_from_native_code(native, target + ".native")
