"""A lab of a user other than root: mounted by fusermount3, used, killed, unmounted."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

import pario
from pario.errors import ParioError
from pario.prove.lab.mount import program
from tests.support.commands import run_command

TOOLS = ["fusermount3", "setpriv", "unshare", "mount"]
#: Runs a command as another user. Through a shell, because setpriv can still execute root's files.
NOBODY = [
    "setpriv",
    "--reuid",
    "65534",
    "--regid",
    "65534",
    "--clear-groups",
    "sh",
    "-c",
    'exec "$@"',
    "sh",
]
#: Creates a device node of FUSE for the user; in some containers only root may open the usual one.
ENTER = 'mknod -m 666 "$1/fuse" c 10 229 && mount --bind "$1/fuse" /dev/fuse && shift && exec "$@"'
SESSION = r"""
import errno, json, os, signal, subprocess, sys, time
def pario(*words):
    done = subprocess.run([sys.executable, "-m", "pario", *words], capture_output=True, text=True)
    return done.stdout + done.stderr
def told():
    return json.loads(pario("lab", "status", "L", "--json"))
def is_dead():
    try:
        os.stat("L")
    except OSError as error:
        return error.errno == errno.ENOTCONN  # ECONNABORTED: it is still ending
def kill():
    os.kill(told()["process"], signal.SIGKILL)
    while not is_dead():
        time.sleep(0.01)
up = pario("lab", "up", "L", "--targets", "4", "--rate", "0", "--latency", "0")
print(os.geteuid(), "4 targets" in up)
with open("L/file", "w") as file: file.write("bytes")
print(open("L/file").read(), os.stat("L/file").st_uid, os.stat("L.lab/tree/file").st_uid)
print([target["bytes_written"] for target in told()["targets"]].count(5))
os.setxattr("L", "lustre.lov", bytes.fromhex("d00bd10b01000000" + "00" * 16 + "000010000300ffff"))
open("L/striped", "w").close()
print(int.from_bytes(os.getxattr("L/striped", "lustre.lov")[28:30], "little"))
kill()
print("has died" in pario("lab", "status", "L"))
print("had died" in pario("lab", "up", "L", "--targets", "4"), open("L/file").read())
kill()
print(repr(pario("lab", "down", "L")), os.listdir("."))
"""


def interpreter(place: Path) -> str:
    """Finds a Python that the other user may run."""
    for python in (sys.executable, "/usr/bin/python3"):
        done = run_command(
            [*NOBODY, python, "-c", "import sys; assert sys.version_info >= (3, 11)"],
            cwd=place,
        )
        if done.returncode == 0:
            return python
    pytest.skip("there is no Python that another user may run")


@pytest.mark.system
def test_a_lab_of_an_ordinary_user(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: without it, all tests of labs already run as an ordinary user")
    if missing := [tool for tool in TOOLS if not shutil.which(tool)]:
        pytest.skip(f"needs {', '.join(missing)}")
    try:
        lab = program()
    except ParioError as error:
        pytest.skip(str(error))
    place = Path("/tmp") / f"pario-lab-user-{os.getpid()}"  # open to other users
    place.mkdir(mode=0o755)
    try:
        (work := place / "work").mkdir()
        os.chown(work, 65534, 65534)
        shutil.copy(lab, place / "pario-lab")
        shutil.copytree(
            Path(pario.__file__).parent,
            place / "python" / "pario",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        environment = {
            "PATH": os.environ["PATH"],
            "PARIO_LAB": str(place / "pario-lab"),
            "PYTHONPATH": str(place / "python"),
        }
        user = [*NOBODY, interpreter(place), "-c", SESSION]
        started = ["unshare", "-m", "sh", "-c", ENTER, "sh", str(place), *user]
        done = run_command(started, cwd=work, env=environment)
        if any(tool in done.stderr for tool in ("unshare:", "mknod:", "mount:")):
            pytest.skip(f"no name space in which another user may mount: {done.stderr.strip()}")
        expected = ["65534 True", "bytes 65534 65534", "1", "3", "True", "True bytes", "'' []"]
        assert done.stdout.splitlines() == expected, done.stdout + done.stderr
    finally:
        shutil.rmtree(place)
