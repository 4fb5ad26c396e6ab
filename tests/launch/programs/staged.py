"""Makes, renames, removes and lists files in a staged directory; ``seen`` is another name of the
directory, which is not staged."""

# ruff: noqa: PTH103, PTH104, PTH108, PTH110, PTH118, PTH119, PTH123, PTH202, PTH208, PTH211, SIM115
import errno
import os
import sys
import tempfile

out, seen = sys.argv[1:]
rank = os.environ.get("PMI_RANK", "0")


def exists_unstaged(name: str) -> bool:
    return os.path.lexists(os.path.join(seen, name))


os.chdir(out)
with open(f"new.{rank}", "w") as file:
    file.write("new")
assert os.path.getsize(f"{out}/new.{rank}") == 3
assert not exists_unstaged(f"new.{rank}")

with open(f"part.{rank}", "w") as file:
    file.write("renamed")
os.rename(f"part.{rank}", f"{out}/final.{rank}")
assert open(f"final.{rank}").read() == "renamed"
assert not os.path.exists(f"part.{rank}")

os.makedirs(f"made.{rank}/deep")
descriptor, name = tempfile.mkstemp(dir=f"made.{rank}/deep")
os.write(descriptor, b"temporary")
os.close(descriptor)
assert os.listdir(f"made.{rank}/deep") == [os.path.basename(name)]
os.rename(name, f"made.{rank}/deep/kept")
os.symlink("kept", f"made.{rank}/deep/link")
os.link(f"made.{rank}/deep/kept", f"made.{rank}/deep/second")
assert not exists_unstaged(f"made.{rank}")

with open(f"gone.{rank}", "w"):
    pass
os.unlink(f"gone.{rank}")
assert not os.path.exists(f"gone.{rank}")

if rank == "0":
    with open("old", "a") as file:  # in the directory itself
        file.write(" more")
    assert open(f"{seen}/old").read() == "old more"
    with open("replaced", "w") as file:  # in the stage on the node
        file.write("by new")
    assert (open(f"{out}/replaced").read(), open(f"{seen}/replaced").read()) == ("by new", "old")
    with open("link out", "w") as file:  # at the target of the link
        file.write("through a link")
    os.unlink("unwanted")
    assert not exists_unstaged("unwanted")
    os.rename("moved", "moved again")
    assert open(f"{seen}/moved again").read() == "old"
    with open("sub/of old", "x") as file:
        file.write("sub")
    try:
        os.rename("sub", "sub moved")
    except OSError as error:
        assert error.errno == errno.EXDEV
    else:
        raise AssertionError("expected EXDEV: the new files in it would stay behind")
    try:
        open("old", "x")
    except FileExistsError:
        pass
    else:
        raise AssertionError("expected FileExistsError")
if "--wait" in os.environ.get("STAGED", ""):
    import signal

    print("ready", flush=True)
    signal.pause()
