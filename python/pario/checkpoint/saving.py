"""The stages of one save: its plan, its files, the writes of each rank, and its end."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pario.checkpoint import container, exchange, relay, transfer
from pario.checkpoint.arrays import Converter, Facts, Given
from pario.checkpoint.attributes import check_attrs
from pario.checkpoint.background import Snapshot
from pario.checkpoint.container import TREE, Label
from pario.checkpoint.draining import Draining
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.identity import Identity
from pario.checkpoint.parts import groups, part_number, plan_parts
from pario.checkpoint.plan import (
    Copy,
    RankData,
    RankResult,
    SavePlan,
    SaveRequest,
    plan_compressed,
    plan_one_file,
)
from pario.checkpoint.retention import Retention
from pario.checkpoint.safetensors import MOST_HEADER_BYTES, header_bytes
from pario.checkpoint.store import Store
from pario.checkpoint.transfer import check_space
from pario.copying import write_all
from pario.paths import resolve
from pario.progress import Show, silent
from pario.ranks import Ranks
from pario.version import version


@dataclass(frozen=True)
class Form:
    """The form of a Writer's checkpoints, as its parameters of the same names."""

    files: int | str
    safetensors: bool | None
    compress: bool
    durable: bool

    def is_safetensors(self, facts: Sequence[Facts]) -> bool:
        """True if a file with these arrays is a safetensors file, too: by default if it has a
        state."""
        if self.safetensors is not None:
            return self.safetensors
        if self.files != 1 or self.compress or all(one.name != TREE for one in facts):
            return False
        return header_bytes((one.name, one.shape) for one in facts) <= MOST_HEADER_BYTES


@dataclass(frozen=True)
class Task:
    """A checkpoint that is being written."""

    label: Label
    plan: SavePlan
    data: RankData
    made: bool  # rank 0's file exists
    joint: bool  # the ranks may write rank 0's file together


class Saving:
    """The stages of a save. It keeps the plan for the next save of the same arrays.

    ``changed`` is called before a new plan is made. ``ranks`` of methods are those of the Writer,
    or as many for the background; all methods are collective over them, except
    :meth:`remember_ranks`, :meth:`write_copies` and :meth:`publish`.
    """

    def __init__(
        self,
        ranks: Ranks,
        store: Store,
        form: Form,
        retention: Retention,
        changed: Callable[[], None],
    ) -> None:
        self._ranks, self._store, self._form = ranks, store, form
        self._retention, self._changed = retention, changed
        self._converter = Converter(ranks.rank, ranks.size)
        self._group_of = list[int]()
        self._plan: SavePlan | None = None
        self._about: dict[str, Any] = {}
        self._draining: Draining | None = None
        #: The store where the ranks write, and its nodes.
        self._target, self._nodes = store, 1

    def remember_ranks(self, where: Sequence[tuple[str, str]]) -> None:
        """Remembers host and node of each rank, on rank 0."""
        self._group_of = groups(self._form.files, [node for _, node in where])
        self._about = {
            "pario": version(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "ranks": len(where),
            "hosts": sorted({host for host, _ in where}),
            "command": sys.argv,
            "git": _git_describe(_find_program()),
        }

    def save_on_stage(self, draining: Draining) -> None:
        """Lets the following saves end on a stage."""
        self._draining, self._target, self._nodes = draining, draining.store, draining.nodes

    def begin(
        self, step: int, arrays: Mapping[str, Any], attrs: Mapping[str, Any], copy: Copy
    ) -> Task:
        """Plans a save and collects this rank's data. With a known plan the data is collected
        first, so that no rank writes while others copy."""
        given: list[Given] = []
        data: list[RankData] = []

        def enter() -> tuple[bool, bool]:
            if not isinstance(step, int | np.integer) or step < 0:
                raise CheckpointError(f"step {step!r}; expected a number from 0 on")
            if self._ranks.rank == 0 or self._draining:
                self._target.clear_link(step)
            given.extend(self._converter.convert(name, value) for name, value in arrays.items())
            plan = self._plan
            same = plan is not None and plan.facts == [one.facts for one in given]
            if plan is not None and same:
                data.append(plan.collect(given, copy))
            return same, self._ranks.can_open_files

        def decide(everyones: list[tuple[bool, bool]]) -> tuple[Identity, bool, bool]:
            self._retention.check_attrs(attrs)
            own = self._store.next_identity(step)
            same, joint = (all(answers) for answers in zip(*everyones, strict=True))
            again = self._plan is not None and same
            if again:
                self._prepare(Label(step, attrs, self._about, own))
            return own, again, joint

        own, again, joint = self._ranks.together(f"save(step {step})", enter, decide)
        label = Label(step, attrs, self._about, own)
        if again:
            assert self._plan is not None
            return Task(label, self._plan, data[0], not self._plan.independent, joint)
        plan, collected = self._make_plan(label, given, copy)
        return Task(label, plan, collected, True, joint)

    def share_moves(self, snapshot: Snapshot, task: Task) -> relay.Moves:
        """The writes of this rank from the copies of its node; computed once for a plan. With
        compressed arrays a rank writes its own."""
        if self._form.compress:
            moves = task.plan.moves(task.data, self._ranks.rank, all_ranks=False)
            return {name: [mine] for name, mine in moves.items()}
        if snapshot.moves is None:
            step, ranks = task.label.step, self._ranks
            made = [task.plan.part[0]] if task.plan.part else []
            moves = task.plan.moves(task.data, ranks.rank, all_ranks=False)
            what = f"save(step {step})"
            with self._discarded_on_failure(step):
                snapshot.moves = relay.share(ranks, what, snapshot.memory, moves, made)
        return snapshot.moves

    def write(self, ranks: Ranks, task: Task, show: Show = silent) -> RankResult:
        """Writes this rank's data: alone, or together with other ranks where some have short
        runs."""
        part, plan, show = self._make_files(ranks, task), task.plan, ranks.moving(show)
        alone = plan.independent or not task.joint
        for name, moves in plan.moves(task.data, ranks.rank, all_ranks=not alone).items():
            path, durable = str(part / name), self._form.durable and not self._draining
            if alone:
                transfer.write(path, moves, durable=durable, show=show)
            else:
                node = bool(self._draining)  # whose stage has a file of its own
                exchange.write(ranks, path, moves, durable=durable, node=node, show=show)
        return plan.result(task.data)

    def write_copies(self, ranks: Ranks, task: Task, moves: relay.Moves) -> RankResult:
        """Writes this rank's share of its node's copies, in the background."""
        part = self._make_files(ranks, task)
        show = ranks.moving() if ranks.threads else silent
        for name, by_rank in moves.items():
            exchange.write_for_all(str(part / name), by_rank, durable=self._form.durable, show=show)
        return task.plan.result(task.data)

    def conclude(self, ranks: Ranks, task: Task, write: Callable[[], RankResult]) -> Path:
        """Completes a checkpoint when all ranks have written."""
        with self._discarded_on_failure(task.label.step):
            return ranks.together(
                f"the end of saving step {task.label.step}",
                write,
                lambda results: self._finish(task, results),
            )

    def publish(self, store: Store, step: int) -> Path:
        """Publishes a step of ``store``, and removes those that no rule keeps."""
        return store.publish(step, self._retention.select_removable)

    def _make_plan(
        self, label: Label, given: Sequence[Given], copy: Copy
    ) -> tuple[SavePlan, RankData]:
        """Plans a save of new arrays, makes its files, and collects this rank's data."""
        self._target.await_removal()
        facts = [one.facts for one in given]
        request = SaveRequest(
            str(self._target.part(label.step)),
            label,
            {one.facts.name: one.attrs for one in given},
            self._nodes,
            self._form.is_safetensors(facts),
        )
        self._plan = None
        self._changed()
        with self._discarded_on_failure(label.step):
            if self._form.compress:
                plan = plan_compressed(self._ranks, request, given)
            elif self._form.files == 1:
                plan = plan_one_file(self._ranks, request, facts)
            else:
                plan = plan_parts(self._group_of, self._ranks, request, facts)
            data = self._ranks.agree(f"save(step {label.step})", lambda: plan.collect(given, copy))
        if not self._form.compress:  # frames have other places in each save
            self._plan = plan
        return plan, data

    def _prepare(self, label: Label) -> None:
        """Prepares a save with a known plan, on rank 0: checks the space, and makes its file where
        other ranks need it."""
        assert self._plan is not None
        check_attrs(label.attrs)
        with self._discarded_on_failure(label.step):
            self._target.begin(label.step)
            self._check_space(label.step, self._plan.space_needed(self._nodes))
            if not self._plan.independent:
                self._make_container(self._plan, label)

    def _check_space(self, step: int, needed: int) -> None:
        """Checks the space; waits for removals only where their space is needed."""
        path = str(self._target.part(step))
        try:
            check_space(path, needed)
        except CheckpointError:
            self._target.await_removal()
            check_space(path, needed)

    def _make_container(self, plan: SavePlan, label: Label) -> None:
        assert plan.master is not None
        skeleton = container.relabel(plan.master.skeleton, label)
        container.write(str(self._target.container(label.step)), skeleton)

    def _make_files(self, ranks: Ranks, task: Task) -> Path:
        """Makes this rank's files when removals are complete. Returns their directory."""
        self._target.await_removal()
        part, plan = self._target.part(task.label.step), task.plan
        if ranks.rank == 0 and not task.made:
            self._make_container(plan, task.label)
        if self._draining:
            self._target.begin(task.label.step)  # rank 0 has done it on its own node only
        if plan.part is not None:
            name, skeleton = plan.part
            own = replace(task.label.identity, part=part_number(name))
            container.write(str(part / name), replace(skeleton, identity=own))
        return part

    def _finish(self, task: Task, results: Sequence[RankResult]) -> Path:
        """Writes packed arrays and checksums, and publishes the checkpoint, on rank 0."""
        master, step = task.plan.master, task.label.step
        assert master is not None
        sums = [one.sums for one in results]
        master.check_replicated(sums)
        with transfer.open_file(str(self._target.container(step)), os.O_RDWR) as file:
            master.unpacking.write(file, [one.packed for one in results])
            write_all(file, master.skeleton.places.sums, master.order_sums(sums))
            if self._form.durable and not self._draining:
                os.fsync(file)
        return self._store.path(step) if self._draining else self.publish(self._store, step)

    @contextmanager
    def _discarded_on_failure(self, step: int) -> Iterator[None]:
        """Removes the unfinished step where the body raises an error."""
        try:
            yield
        except BaseException as error:
            if self._draining:
                self._draining.discard(step)
            elif self._ranks.rank == 0:
                self._store.discard(step)
            if isinstance(error, OSError):
                reason = error.strerror or error
                raise CheckpointError(f"{self._target.part(step)}: {reason}") from error
            raise


def _find_program() -> Path:
    """The directory of the running program."""
    return resolve(sys.argv[0]).parent if sys.argv and sys.argv[0] else Path.cwd()


@functools.cache
def _git_describe(place: Path) -> str:
    """The version of the program in a directory, as of the first call, because git looks at all
    files of a checkout; empty where git does not know it."""
    command = ["git", "-C", str(place), "describe", "--always", "--dirty"]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
        return done.stdout.strip()
    return ""
