"""Copy what a draft's repository has of its own into a repository that is ours to read.

An agent writes to the repository of its draft: configuration, hooks, refs, objects, and links in
place of any of them. Git is never run there. Plain files that look like objects and refs are copied
into a temporary repository with a clean configuration, which borrows the project's objects:

    draft   HEAD, refs/heads, packed-refs, new loose objects and packs   ──copied──▶  quarantine
    project objects                                                      ──borrowed─▶  quarantine

Indexes of packs are made anew. No link is followed, and an alternates file of the draft is ignored.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.confine import Rooted
from holdfast.workbench.core.git_branch import (
    alternates,
    is_loose_directory,
    is_loose_object,
    is_pack,
    is_table,
)
from holdfast.workbench.core.git_settings import clean_config
from holdfast.workbench.failures import GitFailed, GitObjectsRefused, GitRepositoryRefused
from holdfast.workbench.git_repository import (
    Git,
    Repository,
    clean_environment,
    git_program,
    repository_settings,
)
from holdfast.workbench.model import Draft
from holdfast.workbench.views import View
from holdfast.world import disk_failure

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_REFS_MAX: Final = 20_000
_REFS_DEPTH_MAX: Final = 20


class DraftRepository(NamedTuple):
    """Descriptors of the two directories of a repository, as a draft has them."""

    directory: int
    common: int


@contextmanager
def draft_repository(
    view: View, draft: Draft, repository: Repository
) -> Generator[DraftRepository]:
    """The repository of a project as a draft has it: where it is, is the project's word alone.

    Raises GitRepositoryRefused if the draft does not cover it.
    """
    with ExitStack() as stack:
        opened: list[int] = []
        for path in (repository.directory, repository.common):
            try:
                opened.append(_opened(view, draft, path))
            except OSError as error:
                reason = f"the draft has no repository at {path} ({error.strerror})"
                raise GitObjectsRefused(draft=draft.id, reason=reason) from error
            stack.callback(os.close, opened[-1])
        yield DraftRepository(*opened)


def quarantined(
    source: DraftRepository, draft: Draft, repository: Repository, scratch: Path
) -> Git:
    """Git on a copy of what a draft's repository has of its own, in an empty directory.

    Raises GitObjectsRefused if something in it is not what git writes.
    """
    program = git_program()
    settings = repository_settings(program, scratch, repository)
    try:
        _fill(source, repository, scratch, clean_config(settings))
    except OSError as error:
        raise disk_failure(error, path=str(scratch)) from error
    git = Git(program, scratch, {**clean_environment(scratch), "GIT_DIR": str(scratch)})
    for pack in (scratch / "objects" / "pack").glob("*.pack"):
        try:
            git.run("index-pack", str(pack))
        except GitFailed as failure:
            raise GitObjectsRefused(draft=draft.id, reason=failure.reason) from failure
    return git


def _opened(view: View, draft: Draft, path: Path) -> int:
    if view.place is not None:
        return view.place.files.open_without_links(os.fsencode(path), _DIRECTORY)
    if not path.is_relative_to(draft.project):
        reason = "it lies outside of the project, and the draft is a copy"
        raise GitRepositoryRefused(project=draft.project, reason=reason)
    inside = os.fsencode(path.relative_to(draft.project))
    return Rooted(view.root).open_without_links(inside, _DIRECTORY)


def _fill(source: DraftRepository, repository: Repository, scratch: Path, config: bytes) -> None:
    for name in ("objects/pack", "objects/info", "refs/heads"):
        (scratch / name).mkdir(parents=True)
    (scratch / "config").write_bytes(config)
    lent = os.fsencode(repository.common / "objects")
    (scratch / "objects" / "info" / "alternates").write_bytes(alternates(lent))
    with suppress(FileNotFoundError):
        shutil.copyfile(repository.common / "shallow", scratch / "shallow")
    if not _copied(source.directory, "HEAD", scratch / "HEAD"):
        (scratch / "HEAD").write_text("ref: refs/heads/main\n")
    _copied(source.common, "packed-refs", scratch / "packed-refs")
    _copy_refs(source.common, scratch)
    _copy_tables(source.common, scratch)
    _copy_objects(source.common, repository.common / "objects", scratch / "objects")


def _copy_objects(source: int, known: Path, target: Path) -> None:
    """Copy loose objects and packs that the project does not have."""
    with _inside(source, "objects") as objects:
        if objects is None:
            return
        for name in os.listdir(objects):
            if name != "pack" and not is_loose_directory(name):
                continue
            is_wanted = is_pack if name == "pack" else is_loose_object
            have = _names(known / name)
            with _inside(objects, name) as directory:
                new = [] if directory is None else sorted({*os.listdir(directory)} - have)
                for each in filter(is_wanted, new):
                    (target / name).mkdir(exist_ok=True)
                    assert directory is not None
                    _copied(directory, each, target / name / each)


def _copy_refs(source: int, target: Path) -> None:
    left = _REFS_MAX
    for parent, name, path in _files(source, Path("refs/heads"), _REFS_DEPTH_MAX):
        if left == 0:
            return
        left -= 1
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        _copied(parent, name, target / path)


def _copy_tables(source: int, target: Path) -> None:
    with _inside(source, "reftable") as tables:
        if tables is not None:
            (target / "reftable").mkdir()
            for name in filter(is_table, os.listdir(tables)):
                _copied(tables, name, target / "reftable" / name)


def _files(directory: int, path: Path, depth: int) -> Iterator[tuple[int, str, Path]]:
    """Every plain file below a directory, with the directory that it is in; no link is followed."""
    with _inside(directory, *path.parts) as here:
        names = [] if here is None or depth == 0 else sorted(os.listdir(here))
        for name in names:
            assert here is not None
            mode = os.stat(name, dir_fd=here, follow_symlinks=False).st_mode
            if stat.S_ISREG(mode):
                yield here, name, path / name
            elif stat.S_ISDIR(mode):
                yield from _files(directory, path / name, depth - 1)


@contextmanager
def _inside(directory: int, *names: str) -> Generator[int | None]:
    """A directory further down, if it is one and no link leads there."""
    here: int | None = os.dup(directory)
    try:
        for name in names:
            if here is None:
                break
            below: int | None = None
            with suppress(OSError):
                below = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = below
        yield here
    finally:
        if here is not None:
            os.close(here)


def _copied(directory: int, name: str, target: Path) -> bool:
    """Copy a plain file; False if it is none."""
    try:
        source = os.open(name, _FILE, dir_fd=directory)
    except OSError:
        return False
    try:
        if not stat.S_ISREG(os.fstat(source).st_mode):
            return False
        with open(source, "rb", closefd=False) as reading, open(target, "wb") as writing:
            shutil.copyfileobj(reading, writing, 1 << 20)
        return True
    finally:
        os.close(source)


def _names(directory: Path) -> set[str]:
    try:
        return {*os.listdir(directory)}
    except FileNotFoundError:
        return set()
