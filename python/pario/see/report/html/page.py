"""The frame of all pages: templates, filters, style and script."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from contextlib import suppress
from importlib import resources
from typing import Any

from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from pario import state, wording
from pario.see.analyze.call_sites import join_places
from pario.see.analyze.model import Split
from pario.see.report import svg
from pario.see.report.html.table import NAME_LENGTH, bytes_text, path_text
from pario.see.report.table import Bar
from pario.see.report.tables import bars
from pario.see.report.words import ORDER, SURE, describe_overlaps, describe_range, split_parts
from pario.version import version

_FILTERS = (
    "seconds",
    "size",
    "exact_size",
    "rate",
    "count",
    "share",
    "plural",
    "ranks",
    "moment",
    "exit_status",
)


class _CompiledTemplates(FileSystemBytecodeCache):
    """Keeps compiled templates between runs, which saves a sixth of the time of a short run.

    A directory that cannot be used and a damaged file cost that time again, and are no errors.
    """

    def __init__(self) -> None:
        directory = state.cache_folder("templates")
        with suppress(OSError):
            directory.mkdir(parents=True, exist_ok=True)
        super().__init__(str(directory))

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            super().load_bytecode(bucket)
        except (OSError, EOFError, pickle.UnpicklingError):
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().dump_bytecode(bucket)


def render(template: str, context: Mapping[str, Any]) -> str:
    """Return a page; ``context`` has ``title``, ``run``, ``data`` and the values of the
    template."""
    environment = Environment(
        loader=PackageLoader("pario.see.report.html", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=_CompiledTemplates(),
    )
    environment.filters |= {
        "join_places": join_places,
        "name": _name,
        "path": _path,
        "bytes": bytes_text,
        "overlaps": describe_overlaps,
        "overlap": describe_range,
        **{name: getattr(wording, name) for name in _FILTERS},
    }
    environment.globals |= {
        "split_bar": split_bar,
        "split_parts": split_parts,
        "sure": SURE,
        "order": ORDER,
        "version": version(),
    }
    environment.globals |= {"style": _asset("style.css"), "script": _asset("script.js")}
    return environment.get_template(template).render(context)


def labelled_bar(bar: Bar, label: str) -> Markup:
    """Return the bar of a split; its description for screen readers begins with ``label``."""
    description = "; ".join(text for _, value, text in bar.parts if value > 0)
    return svg.stacked_bar(bar.parts, bar.whole, "bar split", f"{label}: {description}")


def split_bar(split: Split, label: str) -> Markup:
    """Return the wall time of a split as a labelled bar."""
    return labelled_bar(bars.split_bar(split), label)


def data(value: object) -> Markup:
    """Return JSON for the script, without characters that could end its script element."""
    text = json.dumps(value, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _name(text: str) -> str:
    return wording.elide(text, NAME_LENGTH)


def _path(text: str) -> Markup:
    return path_text(text, NAME_LENGTH)


def _asset(name: str) -> Markup:
    return Markup(resources.files(__package__).joinpath(name).read_text(encoding="utf-8"))
