"""docs/findings.md agrees with the table of rules."""

from pathlib import Path

from pario.see.analyze.rules import RULES
from pario.see.analyze.rules.document import document

DOCUMENT = Path(__file__).parents[2] / "docs/findings.md"


def test_document_is_in_step_with_the_rules() -> None:
    assert DOCUMENT.read_text() == document(), (
        "run python -m pario.see.analyze.rules.document > docs/findings.md"
    )


def test_every_remedy_completes_the_verdict_in_few_words() -> None:
    for rule in RULES:
        assert 0 < len(rule.remedy) <= 45, rule.name
        assert not rule.remedy.endswith("."), rule.name
