"""What the documents point to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
PROOF = re.compile(r"`(tests/[\w/.]+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))

    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_proof_that_the_readme_names_exists() -> None:
    proofs = PROOF.findall((ROOT / "README.md").read_text(encoding="utf-8"))

    assert proofs
    assert [proof for proof in proofs if not (ROOT / proof).exists()] == []
