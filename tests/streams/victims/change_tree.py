"""Two processes change a directory tree by random calls. After each call both compare their answers
with those of the file system, which other names of the same files give.
Arguments: tree, seed, steps."""

# ruff: noqa: PTH101, PTH102, PTH104, PTH106, PTH108, PTH119, PTH123, PTH208, PTH211, SIM105

import os
import random
import stat
import sys


def describe(path):
    """Returns all that a program can ask about a name."""
    found = []
    for ask in (os.lstat, os.stat):
        try:
            facts = ask(path)
            kind = stat.S_IFMT(facts.st_mode)
            found.append((kind, facts.st_mode, facts.st_ino, facts.st_size, facts.st_mtime_ns))
        except OSError as error:
            found.append(error.errno)
    for ask in (os.readlink, lambda name: sorted(os.listdir(name)), read, os.path.exists):
        try:
            found.append(ask(path))
        except OSError as error:
            found.append(error.errno)
    return found


def read(path):
    with open(path, "rb", buffering=0) as file:
        return file.read()


def names(tree):
    for folder in ("", "a/", "b/", "a/c/", "link/", "a/c/../", "a/./", "link/../"):
        for name in ("x", "y", "z"):
            yield f"{tree}/{folder}{name}"
    yield from (f"{tree}/{name}" for name in ("a", "b", "a/c", "link", "."))


def change(tree, rng, through_links):
    """Makes a random call; calls through links and renamed directories end the use of the cache."""
    files = [name for name in names(tree) if name[-1] in "xyz"]
    if not through_links:
        files = [name for name in files if "/link/" not in name]
    one, other = rng.choice(files), rng.choice(files)
    folder = f"{tree}/{rng.choice(('a', 'b', 'a/c'))}"

    def write(mode):
        with open(one, mode) as file:
            file.write(str(rng.random()))

    actions = [
        lambda: write("w"),
        lambda: write("a"),
        lambda: os.unlink(one),
        lambda: os.rename(one, other),
        lambda: os.truncate(one, rng.randrange(9)),
        lambda: os.chmod(one, rng.choice((0o600, 0o640))),
        lambda: os.utime(one, (1, rng.randrange(1000))),
        lambda: os.mkdir(folder),
        lambda: os.rmdir(folder),
        lambda: os.symlink(os.path.basename(other), one),
        lambda: os.symlink(f"../{os.path.basename(other)}", one),
        lambda: os.symlink(rng.choice(("a", "a/c")), f"{tree}/link"),
        lambda: os.unlink(f"{tree}/link"),
        lambda: os.link(one, other),
    ]
    if through_links and rng.random() < 0.1:
        actions = [lambda: os.rename(f"{tree}/a", f"{tree}/b")]
    try:
        rng.choice(actions)()
    except OSError:
        pass


def compare(tree):
    for name in names(tree):
        seen, truth = describe(name), describe(f"/proc/self/root{name}")
        assert seen == truth, f"{name}: {seen}, but the file system has {truth}"


def main(tree, seed, steps):
    rng = random.Random(seed)
    ask_in, ask_out = os.pipe()
    told_in, told_out = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ask_out)
        own = random.Random(seed + 1)
        while os.read(ask_in, 1) == b"c":
            if own.random() < 0.5:
                change(tree, own, False)
            compare(tree)
            os.write(told_out, b".")
        os._exit(0)
    os.close(told_out)
    for step in range(steps):
        if rng.random() < 0.5:
            change(tree, rng, step > 0.8 * steps)
        compare(tree)
        os.write(ask_out, b"c")
        assert os.read(told_in, 1) == b".", "the child saw something else"
    os.write(ask_out, b"e")
    assert os.waitpid(child, 0)[1] == 0
    print("same")


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
