"""A page of the documentation that shows what is typed and seen, and a person who follows it.

In a block of the language `console`, `$ ` begins what is typed into a shell and `> ` what is typed
into Holdfast; `^D` is a key. All else is what is seen then, without empty lines: `…` stands for
anything, and a line that ends with `[y/N] y` is a question with its answer. Names that are other
ones each time are learnt where they are first seen, and meant where they are typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from tests.parts.pty_screen import PtyScreen

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMES = re.compile(r"(?P<checkpoint>cp_[0-9a-z]{26})|(?<=--resume )(?P<session>[0-9a-z]{8})")
FORMS = {"checkpoint": "cp_[0-9a-z]{26}", "session": "[0-9a-z]{8}"}
QUESTION = "[y/N] "
KEYS = {"^D": "\x04"}
PROMPTS = ("$", ">")
LEAVING = "/quit"
ANYTHING = r"(?:.*\n)*?"


class Step(NamedTuple):
    """Something that is typed after a prompt (a key has none), and what is seen then."""

    prompt: str
    typed: str
    seen: list[str]


def steps_of(page: str) -> list[Step]:
    """All that a page has one type, in order."""
    return list(_steps(page))


def _steps(page: str) -> Iterator[Step]:
    step = None
    for line in "".join(BLOCK.findall(page)).splitlines():
        prompt, _, typed = line.partition(" ")
        if prompt in PROMPTS or line in KEYS:
            if step is not None:
                yield step
            step = Step(prompt if prompt in PROMPTS else "", typed if typed else "", [])
        else:
            assert step is not None, f"nothing was typed before {line!r}"
            step.seen.append(line)
    if step is not None:
        yield step


class Reader:
    """Types what a page says, in a terminal with a shell, and compares what comes of it."""

    def __init__(self, screen: PtyScreen) -> None:
        self._screen = screen
        self._names: dict[str, str] = {}  # as they are here, by those on the page

    def follow(self, steps: list[Step], *, then: str = "$") -> None:
        """Do all of it; what is ready afterwards has the prompt `then`."""
        self._screen.until(lambda: self._is_ready(steps[0].prompt, -1), "a prompt")
        begin = 0
        for step, after in pairwise([*steps, Step(then, "", [])]):
            if step.prompt:  # a key is pressed in the middle of something, which moves
                begin = self._screen.row - 1  # where the empty line above the prompt is
            if step.prompt == "$":
                begin += 2 + (2 + len(step.typed)) // self._screen.columns
            self._screen.type(f"{self._meant(step.typed)}\r" if step.prompt else KEYS["^D"])
            self._see(step, begin, after)

    def _see(self, step: Step, begin: int, after: Step) -> None:
        """Wait until what a step shows is there, and one can type what comes next."""
        wanted, names = self._pattern(step)
        is_left = after.prompt == ""  # in the middle of something

        def is_over() -> bool:
            self._answer(step, begin)
            return is_left or self._is_ready(after.prompt, begin - 1 + (step.prompt == ">"))

        def is_seen() -> bool:
            seen = self._seen(begin)
            return bool(wanted.match(seen) if is_left else wanted.fullmatch(seen))

        if step.prompt == "$" and after.prompt == "$":  # it is over, and shows nothing more
            self._screen.until(is_over, step.typed)
            assert is_seen(), f"{step} shows\n{self._seen(begin)}"
        self._screen.until(lambda: is_over() and is_seen(), f"{step}\n{wanted.pattern}")
        found = wanted.match(self._seen(begin))
        assert found is not None
        self._names |= {name: found[group] for group, name in names.items()}

    def _is_ready(self, prompt: str, row: int) -> bool:
        """Whether something can be typed, further down than a row."""
        lines, at = self._lines(), self._screen.row
        is_there = at > row and lines[at] == prompt
        return is_there and (prompt == "$" or "".join(lines[at + 1 : at + 2]).startswith("idle"))

    def _answer(self, step: Step, begin: int) -> None:
        answers = [line.rpartition(QUESTION)[2] for line in step.seen if QUESTION in line]
        if self._seen(begin, with_row=True).endswith(f"{QUESTION.strip()}\n"):
            self._screen.type(f"{answers[0]}\r")
            self._screen.shows(f"{QUESTION}{answers[0]}")

    def _seen(self, begin: int, *, with_row: bool = False) -> str:
        lines = self._lines()[begin : self._screen.row + with_row]
        return "".join(f"{line}\n" for line in lines if line)

    def _lines(self) -> list[str]:
        return self._screen.scrolled.split("\n")

    def _meant(self, typed: str) -> str:
        for name, here in self._names.items():
            typed = typed.replace(name, here)
        return typed

    def _pattern(self, step: Step) -> tuple[re.Pattern[str], dict[str, str]]:
        """What is to be seen, and which groups of it are names that are not known yet."""
        names: dict[str, str] = {}
        lines = [ANYTHING if line == "…" else self._line(line, names) + r"\n" for line in step.seen]
        if step.prompt == ">" and step.typed != LEAVING:  # it stays to be read
            lines.insert(0, f"> {re.escape(step.typed) or '.*'}\n")
        if not step.prompt:
            lines.insert(0, ANYTHING)
        return re.compile("".join(lines)), names

    def _line(self, line: str, names: dict[str, str]) -> str:
        pattern = re.escape(line)
        for found in NAMES.finditer(line):
            if found[0] not in self._names:
                group = f"name{len(self._names) + len(names)}"
                names[group] = found[0]
                pattern = pattern.replace(found[0], f"(?P<{group}>{FORMS[str(found.lastgroup)]})")
        return self._meant(pattern).replace(re.escape("…"), ".*")
