"""Which modules are mutated, which tests run for each, and which mutations of them are chosen."""

from __future__ import annotations

import random
from pathlib import Path

from tests.mutants.mutations import Mutation, mutations
from tests.shape.source import SRC, TESTS, sources
from tests.shape.test_tidy import TESTED_THROUGH

# The transactions of the workbench: what a publication or a restore runs through.
_TRANSACTION = {
    "acting",
    "afterwards",
    "marker",
    "operations",
    "owners",
    "publication",
    "publishing",
    "recovering",
    "renaming",
    "restoring",
    "settling",
    "site",
    "staging",
    "three_way",
    "transaction",
    "undoing",
}


def _is_mutated(path: Path) -> bool:
    package, *_ = path.parts
    if package == "workbench":
        return path.stem in _TRANSACTION
    return package in {"exec", "host"} and path.stem not in {"__init__", "__main__", "failures"}


MODULES = sorted(
    str(source.path)
    for source in sources(SRC)
    if len(source.path.parts) > 1 and _is_mutated(Path(source.path))
)


def choose(*, seed: int, count: int) -> list[Mutation]:
    """The mutations that a seed chooses, as many of each package."""
    chance = random.Random(seed)
    packages = sorted({path.split("/", 1)[0] for path in MODULES})
    chosen: list[Mutation] = []
    for index, package in enumerate(packages):
        every = [
            mutation
            for path in MODULES
            if path.startswith(f"{package}/")
            for mutation in mutations(path, (SRC / path).read_text(encoding="utf-8"))
        ]
        share = count // len(packages) + (index < count % len(packages))
        chosen += chance.sample(every, min(share, len(every)))
    return sorted(chosen)


def tests_of(path: str) -> list[str]:
    """The test files of a module: its mirror, or the one it is tested through."""
    module = Path(path)
    mirror = Path("tests") / module.with_name(f"test_{module.name}")
    if (TESTS.parent / mirror).exists():
        return [str(mirror)]
    through = TESTED_THROUGH.get(path)
    return [f"tests/{through}"] if through else []


def tests_beyond(path: str) -> list[str]:
    """Tests that run when those of the module let a mutation pass: the whole package's."""
    package = path.split("/", 1)[0]
    if package == "workbench":
        return ["tests/workbench", "tests/journeys/test_workbench.py"]
    return [f"tests/{package}"]
