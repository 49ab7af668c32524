"""Which modules are mutated, which tests run for each, and which mutations of them are chosen."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from tests.mutants.mutations import Mutation, mutations
from tests.shape.mirrors import is_for
from tests.shape.source import SRC, TESTS, sources
from tests.shape.test_tidy import TESTED_THROUGH

# What a publication or a restore runs through.
_TRANSACTION = {"diff/three_way", "operations/publish", "operations/recovery", "operations/restore"}


def _is_mutated(path: Path) -> bool:
    package, *inside = path.with_suffix("").parts
    if package == "workbench":
        return inside[0] == "transaction" or "/".join(inside) in _TRANSACTION
    return package in {"exec", "host"} and path.stem not in {"__init__", "__main__", "failures"}


MODULES = sorted(
    str(source.path)
    for source in sources(SRC)
    if len(source.path.parts) > 1 and _is_mutated(Path(source.path))
)


def choose(*, seed: int, count: int) -> list[Mutation]:
    """The mutations that a seed chooses, as many of each package."""
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
        chosen += least(every, seed=seed, count=share)
    return sorted(chosen)


def least(every: Iterable[Mutation], *, seed: int, count: int) -> list[Mutation]:
    """Those whose hash is smallest, so that a change of the code changes few of the others."""
    seen: Counter[tuple[str, str, str]] = Counter()
    ranked: list[tuple[str, Mutation]] = []
    for mutation in sorted(every):
        seen[mutation.what] += 1
        text = "\0".join((str(seed), *mutation.what, str(seen[mutation.what])))
        ranked.append((hashlib.sha256(text.encode()).hexdigest(), mutation))
    return [mutation for _, mutation in sorted(ranked)[:count]]


def tests_of(path: str) -> list[str]:
    """The test files of a module: its own, or the one it is tested through."""
    module = PurePosixPath(path)
    beside = sorted((TESTS / module.parent).glob("test_*.py"))
    own = [test.relative_to(TESTS) for test in beside]
    if found := [f"tests/{each}" for each in own if is_for(PurePosixPath(each), module)]:
        return found
    through = TESTED_THROUGH.get(path)
    return [f"tests/{through}"] if through else []


def tests_beyond(path: str) -> list[str]:
    """Tests that run when those of the module let a mutation pass: the whole package's.

    Files that import the module come first, for they are the likeliest to notice.
    """
    package = path.split("/", 1)[0]
    name = "holdfast." + path.removesuffix(".py").replace("/", ".")
    near = sorted(
        str(file.relative_to(TESTS.parent))
        for file in (TESTS / package).rglob("test_*.py")
        if name in file.read_text(encoding="utf-8")
    )
    beyond = [*near, f"tests/{package}"]
    return [*beyond, "tests/journeys/test_workbench.py"] if package == "workbench" else beyond
