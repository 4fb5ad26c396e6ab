"""Creates files in the current directory in the ways of C programs; prints the calls' results."""
# ruff: noqa: PTH102, PTH116, PTH208, PTH211

import contextlib
import ctypes
import fcntl
import os
import stat

libc = ctypes.CDLL(None, use_errno=True)
libc.fopen.restype = ctypes.c_void_p


def write_file(path: str, descriptor: int) -> None:
    """Writes and closes the file; prints its permissions and its blocking mode."""
    os.write(descriptor, b"bytes")
    flags = os.get_blocking(descriptor)
    os.close(descriptor)
    print(path, oct(stat.S_IMODE(os.stat(path).st_mode)), "blocking" if flags else "non-blocking")


def open_stream(path: str, mode: bytes) -> None:
    file = libc.fopen(path.encode(), mode)
    print(path, "opened" if file else os.strerror(ctypes.get_errno()))
    if file:
        libc.fclose(ctypes.c_void_p(file))


def fail_to_open(path: str, flags: int) -> None:
    try:
        os.open(path, flags)
    except OSError as error:
        print(path, error.strerror)


def make_temporary(call, pattern: str, *numbers: int) -> None:  # type: ignore[no-untyped-def]
    """Creates a file whose name the call chooses; prints its properties."""
    name = ctypes.create_string_buffer(pattern.encode())
    descriptor = call(name, *numbers)
    chosen = name.value.decode()
    print(
        pattern,
        len(chosen),
        chosen != pattern,
        oct(fcntl.fcntl(descriptor, fcntl.F_GETFL)),
        fcntl.fcntl(descriptor, fcntl.F_GETFD),
    )
    os.write(descriptor, b"bytes")
    print(os.pread(descriptor, 10, 0), oct(stat.S_IMODE(os.stat(chosen).st_mode)))
    os.close(descriptor)


os.umask(0o027)
folder = os.open(".", os.O_RDONLY)
write_file("open.dat", os.open("open.dat", os.O_WRONLY | os.O_CREAT, 0o666))
write_file(
    "openat.dat", os.open("openat.dat", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=folder)
)
write_file("readonly.dat", os.open("readonly.dat", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444))
write_file("creat.dat", libc.creat(b"creat.dat", 0o600))
write_file("other.txt", os.open("other.txt", os.O_WRONLY | os.O_CREAT, 0o600))
open_stream("fopen.dat", b"w")
open_stream("append.dat", b"a")
open_stream("exclusive.dat", b"wx")
open_stream("exclusive.dat", b"wx")
open_stream("nothing/fopen.dat", b"w")
fail_to_open("open.dat", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
fail_to_open("nothing/open.dat", os.O_WRONLY | os.O_CREAT)
with contextlib.suppress(OSError):  # some file systems have no links
    os.mkdir("there")
    os.symlink("there/behind.txt", "between")
    os.symlink("between", "link.dat")
    fail_to_open("link.dat", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    write_file("link.dat", os.open("link.dat", os.O_WRONLY | os.O_CREAT, 0o600))
    os.symlink("nothing/behind.txt", "nowhere.dat")
    fail_to_open("nowhere.dat", os.O_WRONLY | os.O_CREAT)
for call, pattern, numbers in [
    (libc.mkstemp, "stemp", ()),
    (libc.mkostemp, "ostemp", (os.O_APPEND | os.O_CLOEXEC,)),
    (libc.mkstemps, "stemps", (4,)),
    (libc.mkostemps64, "ostemps", (4, os.O_APPEND)),
]:
    make_temporary(call, pattern + "-XXXXXX" + (".dat" if pattern.endswith("s") else ""), *numbers)
print(
    "bad pattern",
    libc.mkstemp(ctypes.create_string_buffer(b"nothing.dat")),
    os.strerror(ctypes.get_errno()),
)
os.mkdir("made")
os.mkdir("plain")
print(*sorted(name.split("-")[0] for name in os.listdir(".")))
