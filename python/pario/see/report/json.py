"""The report, the comparison of two runs, and the survey of many as JSON. docs/report-json.md,
docs/compare.md and docs/survey.md describe the schemas."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from pario.see.analyze.comparison import Comparison
from pario.see.analyze.model import Analysis
from pario.see.analyze.survey import Survey

FORMAT = "pario-report"
#: The version grows if a field changes its meaning or disappears; new fields do not change it.
VERSION = 1
COMPARISON_FORMAT = "pario-comparison"
COMPARISON_VERSION = 1
SURVEY_FORMAT = "pario-survey"
SURVEY_VERSION = 1


def render(analysis: Analysis) -> str:
    """Return one JSON object in ASCII. Texts are as recorded, with undecodable bytes as lone
    surrogates (PEP 383)."""
    return _text({"format": FORMAT, "version": VERSION, **asdict(analysis)})


def render_comparison(comparison: Comparison) -> str:
    """Return a comparison as one JSON object in ASCII."""
    head = {"format": COMPARISON_FORMAT, "version": COMPARISON_VERSION, "faster": comparison.faster}
    return _text({**head, **asdict(comparison)})


def render_survey(survey: Survey) -> str:
    """Return a survey as one JSON object in ASCII, with a line break at its end."""
    return _text({"format": SURVEY_FORMAT, "version": SURVEY_VERSION, **asdict(survey)}) + "\n"


def _text(document: dict[str, Any]) -> str:
    return json.dumps(_finite(document), indent=1, allow_nan=False)


def _finite(value: Any) -> Any:
    """Return the value with null for infinite numbers and NaN, which JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_finite(item) for item in value]
    return value
