"""Scenarios of checkpoints: saved and loaded by one process, and by ranks that move their bytes
together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pario import checkpoint
from pario.checkpoint.geometry import Box, whole
from pario.ranks import Ranks
from tests.faults.scenario import Problems, Scenario, require_success
from tests.python.support import threads

_ARRAY = np.arange(600.0)
#: Elements of a compressed array, in two chunks.
_COMPRESSED = 1 << 18


def report(work: Callable[[], None]) -> int:
    """Turns an error of checkpoints into a message and a status; any other exception is a
    defect."""
    try:
        work()
    except checkpoint.CheckpointError as error:
        print(f"error: {error}")
        return 2
    return 0


def save(root: Path, step: int, **options: Any) -> int:
    def work() -> None:
        arrays = {"T": _ARRAY * step}
        if "compress" in options:
            arrays["Z"] = np.full(_COMPRESSED, float(step))
        with checkpoint.Writer(None, root / "ck", keep=2, **options) as writer:
            writer.save(step, arrays, {"again": step})

    return report(work)


def check_checkpoint(root: Path, done: bool) -> Problems:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they name unfinished saves
        state = checkpoint.load(None, root / "ck")
    if state.step not in ((2,) if done else (1, 2)):
        yield f"step {state.step} is loaded"
    if state.attrs["again"] != state.step or not np.array_equal(state["T"], _ARRAY * state.step):
        yield f"step {state.step} has other values"
    if "Z" in state and not np.array_equal(state["Z"], np.full(_COMPRESSED, float(state.step))):
        yield f"step {state.step} has another compressed array"


def save_scenario(name: str, left: set[str], **options: Any) -> Scenario:
    return Scenario(
        name,
        prepare=lambda root: require_success(save(root, 1, **options)),
        work=lambda root: save(root, 2, **options),
        check=check_checkpoint,
        left=frozenset(left),
    )


#: The loss of each step: the first one is the best.
_LOSSES = {1: 0.1, 2: 0.9, 3: 0.5}


def save_by_loss(root: Path, step: int, keep: checkpoint.Keep | None) -> int:
    def work() -> None:
        with checkpoint.Writer(None, root / "ck", keep=keep) as writer:
            writer.save(step, {"T": _ARRAY * step}, {"again": step, "loss": _LOSSES[step]})

    return report(work)


def save_without_rules(root: Path) -> None:
    for step in (1, 2):
        require_success(save_by_loss(root, step, None))


def check_best(root: Path, done: bool) -> Problems:
    """The best checkpoint stays, and the second is removed by the save of the third only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they name unfinished saves
        states = [checkpoint.load(None, root / "ck", step=1), checkpoint.load(None, root / "ck")]
    if states[1].step not in ((3,) if done else (2, 3)):
        yield f"step {states[1].step} is loaded"
    for state in states:
        if not np.array_equal(state["T"], _ARRAY * state.step):
            yield f"step {state.step} has other values"


# ---- loads, and ranks that move their bytes together

#: Larger than the arrays that rank 0 moves for all; its columns have short rows.
_GRID = np.arange(1100 * 120.0).reshape(1100, 120)
_RANKS = 3
#: Seconds after which ranks give up a rank; less than the limit of a run.
_PATIENCE = 20.0
#: The file beside the checkpoints that holds the problems that the work itself found.
_FOUND = "found"


def run_ranks(root: Path, program: Callable[[Ranks], str]) -> int:
    """Runs a program on ranks that are threads; it returns a problem or an empty text.

    An error must be a CheckpointError, and must reach all ranks.
    """
    ended = threads.run_on_nodes([0] * _RANKS, program, _PATIENCE)
    errors = [one for one in ended if isinstance(one, Exception)]
    problems = [one for one in ended if isinstance(one, str) and one]
    for error in errors:
        if not isinstance(error, checkpoint.CheckpointError):
            raise error
        print(f"error: {error}")
    if errors and len(errors) < _RANKS:
        problems.append(f"{len(errors)} of {_RANKS} ranks have an error: {errors[0]}")
    (root / _FOUND).write_text("\n".join(problems))
    return 2 if errors else 0


def column_of(ranks: Ranks) -> Box:
    return checkpoint.divide((1, _GRID.shape[1]), ranks.size, ranks.rank)


def share_of(ranks: Ranks) -> Box:
    """The columns of a rank."""
    column = column_of(ranks)
    return Box((0, column.begin[1]), (_GRID.shape[0], column.shape[1]))


def save_together(root: Path, step: int) -> int:
    def program(ranks: Ranks) -> str:
        box = share_of(ranks)
        mine = checkpoint.block(
            _GRID[box.within(whole(_GRID.shape))] * step, _GRID.shape, box.begin
        )
        arrays = {"G": mine, "T": _ARRAY * step}
        with checkpoint.Writer(ranks, root / "ck", keep=2, patience=_PATIENCE) as writer:
            writer.save(step, arrays, {"again": step})
        return ""

    return run_ranks(root, program)


def check_together(root: Path, done: bool) -> Problems:
    yield from check_checkpoint(root, done)
    yield from check_found(root, done)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they name unfinished saves
        state = checkpoint.load(None, root / "ck")
    if not np.array_equal(state["G"], _GRID * state.step):
        yield f"step {state.step} has another array of all ranks"


def load_together(root: Path) -> int:
    skipped: list[warnings.WarningMessage] = []

    def program(ranks: Ranks) -> str:
        box = share_of(ranks)
        state = checkpoint.load(ranks, root / "ck")
        columns = state.read("G", box.begin, box.shape)
        return compare_loaded(state, columns, _GRID[box.within(whole(_GRID.shape))], skipped)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        skipped = caught
        return run_ranks(root, program)


def compare_loaded(
    state: Any, read: Any, saved: Any, warned: Sequence[warnings.WarningMessage]
) -> str:
    """Returns the problem of a loaded checkpoint, or an empty text. An older one may be loaded if a
    warning names the newest."""
    named = any("step-00000002.h5" in str(one.message) for one in warned)
    if state.step != 2 and not (state.step == 1 and named):
        return f"step {state.step} is loaded"
    for array, wanted in ((read, saved), (state["T"], _ARRAY)):
        if not np.array_equal(array, wanted * state.step):
            return "the loaded arrays are others"
    return ""


def load_alone(root: Path) -> int:
    def work() -> None:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            state = checkpoint.load(None, root / "ck")
            (root / _FOUND).write_text(compare_loaded(state, state["G"], _GRID, warned))

    return report(work)


def check_found(root: Path, done: bool) -> Problems:
    """Yields the problems that the work itself has found."""
    found = root / _FOUND
    if found.exists():
        yield from found.read_text().splitlines()
    elif done:
        yield "nothing is compared"


def save_twice(root: Path) -> None:
    for step in (1, 2):
        require_success(save_together(root, step))
    remove_found(root)


def remove_found(root: Path) -> None:
    (root / _FOUND).unlink(missing_ok=True)


_ORDER = {"ck/MANIFEST", "ck/latest"}
_CHECKPOINTS = {"ck/step-00000001.h5", "ck/step-00000002.h5"} | _ORDER
_PARTS = {
    f"ck/step-0000000{step}/{name}" for step in (1, 2) for name in ("master.h5", "part-00000.h5")
}
CHECKPOINT_SCENARIOS = (
    save_scenario("checkpoint", _CHECKPOINTS),
    save_scenario("checkpoint-parts", _PARTS | _ORDER, files="rank"),
    save_scenario("checkpoint-compressed", _CHECKPOINTS, compress="zstd"),
    Scenario(
        "checkpoint-best",
        prepare=save_without_rules,
        work=lambda root: save_by_loss(root, 3, checkpoint.Keep(best=1, metric="loss")),
        check=check_best,
        left=frozenset({"ck/step-00000001.h5", "ck/step-00000003.h5"} | _ORDER),
    ),
    Scenario(
        "checkpoint-together",
        prepare=lambda root: require_success(save_together(root, 1)),
        work=lambda root: save_together(root, 2),
        check=check_together,
        left=frozenset(_CHECKPOINTS | {_FOUND}),
        faulted="ck",
        survives_crashes=False,  # as "checkpoint"; its order of calls differs between runs
        clear=remove_found,
    ),
    Scenario(
        "load",
        prepare=save_twice,
        work=load_alone,
        check=check_found,
        left=frozenset(_CHECKPOINTS | {_FOUND}),
        faulted="ck",
        survives_crashes=False,  # it writes nothing
        clear=remove_found,
    ),
    Scenario(
        "load-together",
        prepare=save_twice,
        work=load_together,
        check=check_found,
        left=frozenset(_CHECKPOINTS | {_FOUND}),
        faulted="ck",
        survives_crashes=False,
        clear=remove_found,
    ),
)
