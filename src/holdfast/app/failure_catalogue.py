"""The catalogue of all failures, and the page of the documentation that is made from it."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

import holdfast
from holdfast.failures import Failure, type_of

_HEAD = """\
# Failures

Made by `make docs` from the declarations; do not edit. The kind of a failure decides its HTTP and
exit status. *Retryable* says whether the same request may succeed when it is made again; one
failure may know better than its class and be less hopeful. Actions are what a screen may offer,
the likeliest first. Facts travel in `details`.
"""
_COLUMNS = (
    "code",
    "title",
    "kind",
    "HTTP",
    "exit",
    "recovery",
    "retryable",
    "actions",
    "what the person reads",
    "facts",
)


def load_failure_classes() -> None:
    """Import every module that declares failures, for `failures.set_class_loader`.

    Commands import only what they need, so a failure that arrives from a host may be of a class
    that this process has not loaded yet.
    """
    for package in pkgutil.iter_modules(holdfast.__path__, "holdfast."):
        name = f"{package.name}.failures"
        if package.ispkg and find_spec(name) is not None:
            importlib.import_module(name)


def all_failures() -> list[type[Failure]]:
    """Every failure that the program declares, by code; imports all that may declare one."""
    load_failure_classes()
    ours = [known for known in type_of.values() if known.__module__.startswith("holdfast.")]
    return sorted(ours, key=lambda known: known.code)


def page() -> str:
    """The catalogue as a page of the documentation, one table per category."""
    sections = [_HEAD]
    for category, known in groupby(all_failures(), key=_category):
        lines = [f"## {category}", "", _row(_COLUMNS), _row("---" for _ in _COLUMNS)]
        sections.append("\n".join([*lines, *map(_described, known)]) + "\n")
    return "\n".join(sections)


def _category(known: type[Failure]) -> str:
    return known.code.partition("_")[0]


def _described(known: type[Failure]) -> str:
    declared = known.declared
    return _row(
        (
            f"`{known.code}`",
            known.title,
            known.kind,
            str(known.kind.http_status),
            str(known.kind.exit_status),
            declared.recovery,
            "yes" if declared.retryable else "no",
            ", ".join(declared.actions) or "—",
            known.user_template,
            ", ".join(f"`{name}`" for name in known.detail_names()) or "—",
        )
    )


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
