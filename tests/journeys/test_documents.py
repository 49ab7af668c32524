"""What the documents point to is there, and what they have one type means something."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

import pytest

from holdfast.cli.declarations import Misuse
from holdfast.cli.parser import parse

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
PROOF = re.compile(r"`(tests/[\w/.]+)`")
PROVED = re.compile(r"\| `pytest (.+)` \|$", re.MULTILINE)

# What people use and what tells of what was decided: the latter may name what is gone.
USED = [page for page in PAGES if "decisions" not in page.parts and page.name != "CHANGELOG.md"]
BLOCK = re.compile(r"^ *```(sh|console)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`(holdfast [^`]+)`")
WORDS = re.compile(r"^ *(?:\$ )?(?:[A-Z_]+=\S+ +)*(?:\.venv/bin/)?(holdfast\b.*)$", re.MULTILINE)
FORM = re.compile(r"\[options\]|<command>")  # of the reference, which is made from the parser
STOPS = {"|", "&&", ";", ">", ">>", "<", "&", "||"}
ELLIPSES = {"…", "..."}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))

    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_proof_that_the_readme_names_exists() -> None:
    proofs = PROOF.findall((ROOT / "README.md").read_text(encoding="utf-8"))

    assert proofs
    assert [proof for proof in proofs if not (ROOT / proof).exists()] == []


@pytest.mark.parametrize("page", USED, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_is_shown_is_understood(page: Path) -> None:
    misused = {
        command: answer.problem
        for command in commands_of(page.read_text(encoding="utf-8"))
        if isinstance(answer := parse(words_of(command)), Misuse)
    }

    assert misused == {}


def commands_of(text: str) -> Iterator[str]:
    """Everything with our name that a page has one type."""
    for language, block in BLOCK.findall(text):
        lines = (line for line in block.splitlines() if language == "sh" or line.startswith("$ "))
        yield from WORDS.findall("\n".join(lines))
    yield from (each for each in INLINE.findall(BLOCK.sub("", text)) if not FORM.search(each))


def words_of(command: str) -> list[str]:
    """The words after our name, up to where a shell would begin something else."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words = list[str]()
    for word in lexer:
        if word in STOPS:
            words = words[:-1] if words[-1].isdigit() else words  # 2> is one of them, too
            break
        words.append(word)
    return [word for word in words[1:] if word not in ELLIPSES]


def proofs() -> list[str]:
    return PROVED.findall((ROOT / "README.md").read_text(encoding="utf-8"))


def test_what_survives_what_is_proved_row_by_row() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.partition("## What survives what")[2].partition("\n\n`pytest`")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]

    assert len(rows) == len(proofs()) > 8
    assert [proof for proof in proofs() if not any(proved_by(proof))] == []


def proved_by(proof: str) -> Iterator[str]:
    """The tests that a command runs, and that say which promise they prove."""
    *options, word = proof.split()
    file = next(each for each in (*options, word) if "/" in each)
    module = import_module(file.removesuffix(".py").replace("/", "."))
    for name, each in vars(module).items():
        marks = {mark.name: mark for mark in getattr(each, "pytestmark", ())}
        if name.startswith("test_") and "promise" in marks:
            yield from (each for each in ids_of(name, marks) if "-k" not in options or word in each)


def ids_of(name: str, marks: Mapping[str, pytest.Mark]) -> Iterator[str]:
    """A test as pytest names it, once for each of its params."""
    for values in marks["parametrize"].args[1] if "parametrize" in marks else [()]:
        given = getattr(values, "values", values)
        yield f"{name}[{'-'.join(map(str, given))}]"
