"""Scenarios of the fault and crash campaigns: operations of pario that promise all or nothing.

A scenario prepares a directory, works in it, and checks which promises its files break afterwards.
The next run of the same work must succeed and leave only its result.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pario.cli import main as pario
from pario.errors import ParioError
from pario.fix.stripe.layout import Part as StripedPart
from pario.fix.stripe.layout import Stripes, Wanted, stripes_of
from pario.fix.stripe.restripe import restripe
from pario.move.archive import Archive
from pario.records import Dataset
from pario.see.tables import read
from tests.faults.checkpoints import CHECKPOINT_SCENARIOS
from tests.faults.scenario import Problems, Scenario, names_in, report_error, require_success

# ---- archives

_TREE = {"a": b"one" * 50, "sub/b": bytes(5000), "sub/c": b""}


def make_tree(root: Path) -> None:
    for name, content in _TREE.items():
        (root / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "tree" / name).write_bytes(content)
    (root / "tree" / "link").symlink_to("a")


def read_tree(folder: Path) -> Mapping[str, bytes]:
    return {name: (folder / name).read_bytes() for name in names_in(folder)}


def pack(root: Path) -> int:
    return pario(["pack", str(root / "tree"), "-o", str(root / "out"), "--threads", "1"])


def unpack(root: Path) -> int:
    return pario(["unpack", str(root / "packed"), "-o", str(root / "out"), "--threads", "1"])


def check_pack(root: Path, done: bool) -> Problems:
    if read_tree(root / "tree") != _TREE | {"link": _TREE["a"]}:
        yield "the files to be packed are others"
    if not (root / "out").exists():
        if done:
            yield "there is no archive"
        return
    archive = Archive(root / "out")
    if {name: archive.read(name) for name in _TREE} != _TREE:
        yield "the archive has other files"


def check_unpack(root: Path, done: bool) -> Problems:
    if not (root / "out").exists():
        if done:
            yield "nothing is unpacked"
    elif read_tree(root / "out") != _TREE | {"link": _TREE["a"]}:
        yield "other files are unpacked"


def prepare_unpack(root: Path) -> None:
    make_tree(root)
    require_success(pario(["pack", str(root / "tree"), "-o", str(root / "packed")]))
    shutil.rmtree(root / "tree")


def remove_output(root: Path) -> None:
    shutil.rmtree(root / "out", ignore_errors=True)


# ---- records

_LINES = [b"%d" % (3**number) for number in range(60)]


def prepare_lines(root: Path) -> None:
    (root / "lines.txt").write_bytes(b"\n".join(_LINES) + b"\n")
    require_success(shuffle(root, 1))
    shutil.copy(root / "out.txt", root / "old.txt")


def shuffle(root: Path, seed: int = 2, *more: str) -> int:
    command = ["records", "shuffle", root / "lines.txt", "-o", root / "out.txt", "--seed", seed]
    return pario([*map(str, command), "--memory", "64M", "--threads", "1", *more])


def check_shuffle(root: Path, done: bool) -> Problems:
    if (root / "lines.txt").read_bytes().split() != _LINES:
        yield "the input is another"
    order = [_LINES.index(line) for line in (root / "out.txt").read_bytes().split()]
    if sorted(order) != list(range(len(_LINES))):
        yield "the output has other records"
    elif done and (root / "out.txt").read_bytes() == (root / "old.txt").read_bytes():
        yield "the output is the old one"


def convert(root: Path) -> int:
    paths = str(root / "lines.txt"), "-o", str(root / "out.prec")
    return pario(["records", "convert", *paths, "--to", "prec"])


def check_records(root: Path, done: bool) -> Problems:
    if not (root / "out.prec").exists():
        if done:
            yield "there is no output"
    elif list(map(bytes, Dataset(root / "out.prec"))) != _LINES:
        yield "the output has other records"


def remove_records(root: Path) -> None:
    (root / "out.prec").unlink(missing_ok=True)


# ---- files: staged, striped, settings

_CONTENTS = (b"old" * 900, b"new" * 1500)


def prepare_stage(root: Path) -> None:
    (root / "shared").mkdir()
    (root / "shared" / "data").write_bytes(_CONTENTS[0])


def stage_in(root: Path) -> int:
    return pario(["stage", "in", str(root / "shared"), "--to", str(root / "node")])


def check_stage_in(root: Path, done: bool) -> Problems:
    if (root / "shared" / "data").read_bytes() != _CONTENTS[0]:
        yield "the source is another"
    copy = root / "node" / "shared" / "data"
    if copy.exists() or done:
        content = copy.read_bytes() if copy.exists() else b""
        if content != _CONTENTS[0]:
            yield f"{len(content)} bytes are staged"


def prepare_stage_out(root: Path) -> None:
    prepare_stage(root)
    require_success(stage_in(root))
    (root / "node" / "shared" / "data").write_bytes(_CONTENTS[1])


def stage_out(root: Path) -> int:
    return pario(["stage", "out", str(root / "node")])


def check_stage_out(root: Path, done: bool) -> Problems:
    content = (root / "shared" / "data").read_bytes()
    if content not in (_CONTENTS[1:] if done else _CONTENTS):
        yield f"{len(content)} bytes were brought back"


def make_copy(copy: Path, wanted: Wanted) -> Stripes:
    """Creates a file without stripes, because the test's file system has none."""
    copy.touch(mode=0o600)
    return stripes_of(copy)


def prepare_restripe(root: Path) -> None:
    (root / "data").write_bytes(_CONTENTS[0])


def move_stripes(root: Path) -> int | None:
    def work() -> None:
        restripe(root / "data", Wanted((StripedPart(count=4),)), create=make_copy, threads=1)

    return report_error(work)


def check_restripe(root: Path, done: bool) -> Problems:
    if (root / "data").read_bytes() != _CONTENTS[0]:
        yield "the file is another"


def prepare_settings(root: Path) -> None:
    from tests.python.plog import FUNCTIONS, ProcessLog, events, ticks

    functions = [(i, ticks(1), 512, ticks(0.1), 0) for i in range(len(FUNCTIONS))]
    records = [{"path": f"/data/{i}", "writes": 10_000} for i in range(3)]
    (root / "run.pario").mkdir()
    log = ProcessLog(rank=0, size=1, functions=functions, records=records, chunks=[events(500)])
    log.write(root / "run.pario")
    (root / "pario.toml").write_text(_SETTINGS)


_SETTINGS = '[[file]]\nmatch = "*.old"\nstreams.size = 4194304\n'


def write_settings(root: Path) -> int:
    return pario(["advise", str(root / "run.pario"), "-o", str(root / "pario.toml")])


def check_settings(root: Path, done: bool) -> Problems:
    text = (root / "pario.toml").read_text()
    whole = text.startswith("#") and "run.pario" in text and text.endswith("\n")
    if (text == _SETTINGS and done) or (text != _SETTINGS and not whole):
        yield f"the settings are {text!r}"


# ---- logs

_COMMAND = 'printf result > "$1/result"; cat "$1/result" > "$1/again"; exit 7'


def run_program(root: Path) -> int:
    """Runs a program whose files and status must not depend on the faults of its logs."""
    command = ["sh", "-c", _COMMAND, "sh", str(root)]
    logs = ["-o", str(root / "logs" / "run.pario"), "--no-report"]
    status = pario(["run", *logs, "--", *command])
    return 0 if status == 7 else status or 1


def check_program(root: Path, done: bool) -> Problems:
    """Checks that logs of a killed run can be read, or that an error names the reason."""
    if not done:
        with suppress(ParioError):
            read([root / "logs" / "run.pario"])
        return
    for name in ("result", "again"):
        if not (root / name).exists() or (root / name).read_bytes() != b"result":
            yield f"the program's file {name} is another"


def remove_logs(root: Path) -> None:
    shutil.rmtree(root / "logs" / "run.pario", ignore_errors=True)


_UNPACKED = {f"out/{name}" for name in (*_TREE, "link")}
_STAGED = frozenset({"shared/data", "node/shared/data", "node/.pario-stage.json"})
SCENARIOS = (
    *CHECKPOINT_SCENARIOS,
    Scenario(
        "pack",
        make_tree,
        pack,
        check_pack,
        frozenset(
            {f"tree/{name}" for name in (*_TREE, "link")} | {"out/00000.tar.zst", "out/index"}
        ),
        clear=remove_output,
    ),
    Scenario(
        "unpack",
        prepare_unpack,
        unpack,
        check_unpack,
        frozenset(_UNPACKED | {"packed/00000.tar.zst", "packed/index"}),
        clear=remove_output,
        survives_crashes=False,  # it does not synchronise its files, like tar
    ),
    Scenario(
        "shuffle",
        prepare_lines,
        shuffle,
        check_shuffle,
        frozenset({"lines.txt", "old.txt", "out.txt"}),
    ),
    Scenario(
        "shuffle-buckets",
        prepare_lines,
        lambda root: shuffle(root, 2, "--way", "buckets"),
        check_shuffle,
        frozenset({"lines.txt", "old.txt", "out.txt"}),
    ),
    Scenario(
        "convert",
        prepare_lines,
        convert,
        check_records,
        frozenset({"lines.txt", "lines.txt.pidx", "old.txt", "out.txt", "out.prec"}),
        clear=remove_records,
    ),
    Scenario(
        "stage-in",
        prepare_stage,
        stage_in,
        check_stage_in,
        _STAGED,
        durable=False,
    ),
    Scenario(
        "stage-out",
        prepare_stage_out,
        stage_out,
        check_stage_out,
        _STAGED,
    ),
    Scenario("restripe", prepare_restripe, move_stripes, check_restripe, frozenset({"data"})),
    Scenario(
        "settings",
        prepare_settings,
        write_settings,
        check_settings,
        frozenset({"pario.toml", "run.pario/node0.1000.17979cfe362a0000.plog"}),
    ),
    Scenario(
        "logs",
        lambda root: (root / "logs").mkdir(),
        run_program,
        check_program,
        frozenset({"result", "again", "logs/run.pario/"}),
        faulted="logs",
        survives_crashes=False,
        clear=remove_logs,
    ),
)
