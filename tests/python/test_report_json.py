"""The JSON report."""

from __future__ import annotations

import json
import math
import re
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import pytest

from pario.see.analyze import model, mpiio_model
from pario.see.report import json as report
from tests.python.support import analyses

DOCUMENT = Path(__file__).parents[2] / "docs" / "report-json.md"


def test_the_document_names_its_format() -> None:
    document = json.loads(report.render(analyses.rich(10)))
    assert document["format"] == "pario-report"
    assert document["version"] == 1
    assert document["verdict"]["critical"] == {
        "compute": 61.4,
        "communication": 9.1,
        "waiting": 22.5,
        "io": 91.2,
        "divided": True,
        "idle": False,
        "peers": 0.0,
    }
    assert len(document["findings"]) == 12
    assert document["findings"][0]["fixes"][0]["kind"] == "setting"


def test_numbers_that_json_does_not_have_are_null() -> None:
    analysis = replace(analyses.small(), job=replace(analyses.small().job, wall=math.nan))
    document = json.loads(report.render(analysis), parse_constant=pytest.fail)
    assert document["job"]["wall"] is None


def test_paths_are_restored_exactly() -> None:
    text = report.render(analyses.hostile())
    assert text.isascii()
    assert [row["path"] for row in json.loads(text)["files"]] == [
        row.path for row in analyses.hostile().files
    ]


def test_every_field_is_documented() -> None:
    described = set(
        re.findall(r"^\| `(\w+)` \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    )
    classes = [
        item
        for item in (*vars(model).values(), *vars(mpiio_model).values())
        if isinstance(item, type) and is_dataclass(item)
    ]
    missing = {
        f"{item.__name__}.{field.name}"
        for item in classes
        for field in fields(item)
        if field.name not in described
    }
    assert missing == set()
