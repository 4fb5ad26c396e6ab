"""What all pages have in common: the templates' surroundings, filters, style and script."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pario import wording
from pario.report.html import tables
from pario.report.html.charts import bars
from pario.report.html.table import bytes_text, path_text
from pario.report.words import SURE
from pario.version import version

_FILTERS = ("seconds", "size", "exact_size", "rate", "count", "share", "plural", "ranks", "moment")


def render(template: str, context: Mapping[str, Any]) -> str:
    """A page; ``context`` has ``title``, ``run`` and ``data`` beside what the template itself shows."""
    environment = Environment(
        loader=PackageLoader("pario.report.html", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"name": _name, "path": _path, "bytes": bytes_text, **{name: getattr(wording, name) for name in _FILTERS}}
    environment.globals |= {"bars": bars, "parts": bars.PARTS, "sure": SURE, "version": version()}
    environment.globals |= {"style": _asset("style.css"), "script": _asset("script.js")}
    return environment.get_template(template).render(context)


def data(value: object) -> Markup:
    """What the script reads: JSON that cannot end the script element it stands in."""
    text = json.dumps(value, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _name(text: str) -> str:
    return wording.elided(text, tables.NAME_LENGTH)


def _path(text: str) -> Markup:
    return path_text(text, tables.NAME_LENGTH)


def _asset(name: str) -> Markup:
    return Markup(resources.files(__package__).joinpath(name).read_text(encoding="utf-8"))
