"""Creates files in the current directory in the ways of C programs; says what the calls came to."""
# ruff: noqa: PTH102, PTH116, PTH208, PTH211

import contextlib
import ctypes
import fcntl
import os
import stat

libc = ctypes.CDLL(None, use_errno=True)
libc.fopen.restype = ctypes.c_void_p


def kept(path: str, descriptor: int) -> None:
    """Writes, and says what the file is like for its program."""
    os.write(descriptor, b"bytes")
    flags = os.get_blocking(descriptor)
    os.close(descriptor)
    print(path, oct(stat.S_IMODE(os.stat(path).st_mode)), "blocking" if flags else "non-blocking")


def stream(path: str, mode: bytes) -> None:
    file = libc.fopen(path.encode(), mode)
    print(path, "opened" if file else os.strerror(ctypes.get_errno()))
    if file:
        libc.fclose(ctypes.c_void_p(file))


def failing(path: str, flags: int) -> None:
    try:
        os.open(path, flags)
    except OSError as error:
        print(path, error.strerror)


def temporary(call, pattern: str, *numbers: int) -> None:  # type: ignore[no-untyped-def]
    """A file whose name the call chooses."""
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
kept("open.dat", os.open("open.dat", os.O_WRONLY | os.O_CREAT, 0o666))
kept("openat.dat", os.open("openat.dat", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=folder))
kept("readonly.dat", os.open("readonly.dat", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444))
kept("creat.dat", libc.creat(b"creat.dat", 0o600))
kept("other.txt", os.open("other.txt", os.O_WRONLY | os.O_CREAT, 0o600))
stream("fopen.dat", b"w")
stream("append.dat", b"a")
stream("exclusive.dat", b"wx")
stream("exclusive.dat", b"wx")
stream("nothing/fopen.dat", b"w")
failing("open.dat", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
failing("nothing/open.dat", os.O_WRONLY | os.O_CREAT)
with contextlib.suppress(OSError):  # not every file system has links
    os.mkdir("there")
    os.symlink("there/behind.txt", "between")
    os.symlink("between", "link.dat")
    failing("link.dat", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    kept("link.dat", os.open("link.dat", os.O_WRONLY | os.O_CREAT, 0o600))
    os.symlink("nothing/behind.txt", "nowhere.dat")
    failing("nowhere.dat", os.O_WRONLY | os.O_CREAT)
for call, pattern, numbers in [
    (libc.mkstemp, "stemp", ()),
    (libc.mkostemp, "ostemp", (os.O_APPEND | os.O_CLOEXEC,)),
    (libc.mkstemps, "stemps", (4,)),
    (libc.mkostemps64, "ostemps", (4, os.O_APPEND)),
]:
    temporary(call, pattern + "-XXXXXX" + (".dat" if pattern.endswith("s") else ""), *numbers)
print(
    "bad pattern",
    libc.mkstemp(ctypes.create_string_buffer(b"nothing.dat")),
    os.strerror(ctypes.get_errno()),
)
os.mkdir("made")
os.mkdir("plain")
print(*sorted(name.split("-")[0] for name in os.listdir(".")))
