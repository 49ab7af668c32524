"""Import commits made in a draft as a branch of the project's repository.

    draft ──copy──▶ quarantine ──pack──▶ checked ──▶ objects of the project ──▶ one new ref

Objects and one ref are added, in the repository and in each submodule that the commits move; no
file of the project, no index, no other ref and no configuration changes. Objects are checked as by
`git fetch` with `transfer.fsckObjects`. A kill leaves unreferenced objects, and it can be repeated.

An agent writes to the repository of its draft: configuration, hooks, refs, objects, and links in
place of any of them. Git is never run there. Plain files that look like objects and refs are copied
into a temporary repository with a clean configuration, which borrows the project's objects:

    draft   HEAD, refs/heads, packed-refs, new loose objects and packs   ──copied──▶  quarantine
    project objects                                                      ──borrowed─▶  quarantine

Pack indexes are generated again. Links are not followed, and an alternates file of the draft is
ignored.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.confine import MergedRootFiles
from holdfast.nouns import RelativePath, autorun_reason
from holdfast.workbench.diff.git_patch import notes_of
from holdfast.workbench.draft.view import DraftView
from holdfast.workbench.failures import (
    DraftMovedOn,
    GitBranchExists,
    GitBranchInvalid,
    GitCommitsMissing,
    GitFailed,
    GitObjectsRefused,
    GitRepositoryMissing,
    GitRepositoryRefused,
)
from holdfast.workbench.git.plans import (
    GITLINK,
    LINK,
    CommitLine,
    Difference,
    FileCount,
    TreeEntry,
    alternates,
    clean_config,
    commit_lines,
    differences,
    file_counts,
    is_loose_directory,
    is_loose_object,
    is_pack,
    is_table,
    without,
)
from holdfast.workbench.git.repository import (
    Git,
    Repository,
    clean_environment,
    clean_git,
    find_repository,
    git_program,
    repository_settings,
    scratch_in,
)
from holdfast.workbench.handle import WorkbenchHandle, encodable
from holdfast.workbench.model import ChangeNote, Draft, EntryKind, PathEntry
from holdfast.workbench.operations.draft_selection import resolve_draft
from holdfast.workbench.operations.git_commit import BRANCHES, commit_at, head_of, move_ref
from holdfast.workbench.operations.open import Workbench
from holdfast.workbench.operations.recovery import opened
from holdfast.world import disk_failure

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_REFS_MAX: Final = 20_000
_REFS_DEPTH_MAX: Final = 20


class DraftRepository(NamedTuple):
    """Descriptors of git directory and common directory in a draft."""

    directory: int
    common: int


@contextmanager
def draft_repository(
    view: DraftView, draft: Draft, repository: Repository
) -> Generator[DraftRepository]:
    """Open the repository in a draft, at the location given by the project alone.

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
    """Copy the draft's own objects and refs into an empty repository.

    Raises GitObjectsRefused for files that git would not write.
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


def _opened(view: DraftView, draft: Draft, path: Path) -> int:
    if view.place is not None:
        return view.place.files.open_without_links(os.fsencode(path), _DIRECTORY)
    if not path.is_relative_to(draft.project):
        reason = "it lies outside of the project, and the draft is a copy"
        raise GitRepositoryRefused(project=draft.project, reason=reason)
    inside = os.fsencode(path.relative_to(draft.project))
    return MergedRootFiles(view.root).open_without_links(inside, _DIRECTORY)


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
    """Copy loose objects and packs that the project lacks."""
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
    """Yield plain files below a directory, without following links."""
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
    """Open a subdirectory without following links; None if it is not one."""
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
    """Copy a plain file; False if it is not one."""
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


_SHOWN_MAX: Final = 50
_OTHERS_MAX: Final = 5
_TARGET_BYTES_MAX: Final = 4096  # PATH_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchReview:
    """Commits that a branch would import: the newest of `count` in `commits`.

    `files` are relative to the merge base with the project's HEAD. `is_there`: the branch already
    exists with this tip.
    """

    draft: str
    branch: str
    tip: str
    count: int
    commits: tuple[CommitLine, ...]
    files: tuple[FileCount, ...]
    submodules: tuple[str, ...] = ()
    is_there: bool = False


def review_branch(workbench: Workbench, branch: str, draft: str | None = None) -> BranchReview:
    """Return the commits of a draft that the project lacks.

    Those of the draft's branch of that name, else of its HEAD. Raises GitBranchInvalid,
    GitBranchExists or GitCommitsMissing.
    """
    with _transfers(workbench, branch, draft) as (_, transfers):
        return transfers[0].review(tuple(each.path for each in transfers[1:]))


def take_branch(
    workbench: Workbench, branch: str, draft: str | None = None, *, tip: str | None = None
) -> BranchReview:
    """Create the branch; `tip` is the reviewed commit.

    Raises DraftMovedOn for another tip, GitObjectsRefused for damaged or forbidden objects; then
    nothing has changed.
    """
    with _transfers(workbench, branch, draft) as (handle, transfers):
        top = transfers[0]
        if tip is not None and tip != top.tip:
            raise DraftMovedOn(draft=top.draft.id, sealed=tip, seal=top.tip)
        taken = top.review(tuple(each.path for each in transfers[1:]))
        for each in transfers:
            each.bring_objects()
        facts = {"draft": top.draft.id, "branch": encodable(branch), "commit": top.tip}
        handle.records.note("branch_prepared", facts, key=_key(branch, top.tip))
        # The submodules first: the commits of the branch itself refer to theirs.
        for each in reversed(transfers):
            each.make_branch()
        handle.records.note("branch_taken", facts)
        return taken


def _key(branch: str, tip: str) -> str:
    return f"branch {encodable(branch)} {tip}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Transfer:
    """Commits on their way from a draft through quarantine to the project."""

    draft: Draft
    path: str  # of a submodule; empty for the project itself
    branch: str
    tip: str
    known: tuple[str, ...]
    quarantine: Git
    project: Git

    @property
    def ref(self) -> bytes:
        return BRANCHES + os.fsencode(self.branch)

    def review(self, submodules: tuple[str, ...]) -> BranchReview:
        """Commits and files that would be imported."""
        stdin = without([self.tip], self.known)
        count = int(self._asked("rev-list", "--count", "--stdin", stdin=stdin))
        listing = self._asked(
            "log", "-z", f"-{_SHOWN_MAX}", "--format=%H%n%an%n%s", "--stdin", stdin=stdin
        )
        return BranchReview(
            draft=self.draft.id,
            branch=self.branch,
            tip=self.tip,
            count=count,
            commits=commit_lines(listing) if count else (),
            files=self._files(),
            submodules=submodules,
            is_there=commit_at(self.project, self.ref) == self.tip,
        )

    def _files(self) -> tuple[FileCount, ...]:
        """Changed files, with notes on what lines do not show."""
        counted = file_counts(self._compared("--numstat"))
        notes = {each.path: self._notes(each) for each in differences(self._compared("--raw"))}
        return tuple(each._replace(notes=notes.get(each.path, ())) for each in counted)

    def _notes(self, difference: Difference) -> tuple[ChangeNote, ...]:
        path = RelativePath.of(difference.path)
        before, after = self._entry(difference.before), self._entry(difference.after)
        is_link = after is not None and after.kind is EntryKind.LINK
        runs = autorun_reason(path, is_link=is_link) if after is not None else ""
        return notes_of(path, before, after, runs)

    def _entry(self, recorded: TreeEntry | None) -> PathEntry | None:
        """Entry of a git tree; None for a submodule."""
        if recorded is None or recorded.mode == GITLINK:
            return None
        if recorded.mode != LINK:
            return PathEntry(EntryKind.FILE, int(recorded.mode, 8) & 0o777)
        id = recorded.object.decode()
        size = int(self._asked("cat-file", "-s", id))
        # A hostile tree can give any blob the link mode; oversized ones are not read.
        is_target = size < _TARGET_BYTES_MAX
        told = f"({size:,} bytes)".encode()
        target = self._asked("cat-file", "blob", id) if is_target else told
        return PathEntry(EntryKind.LINK, 0o777, target=target)

    def gitlinks(self) -> list[tuple[bytes, str]]:
        """Submodules that the commits move, with their new commits."""
        return [
            (each.path, each.after.object.decode())
            for each in differences(self._compared("--raw"))
            if each.after is not None and each.after.mode == GITLINK
        ]

    def bring_objects(self) -> None:
        """Import missing objects, checked; no ref points to them yet."""
        stdin = without([self.tip], self.known)
        stem = self.quarantine.scratch / "outgoing"
        options = ("--revs", "--no-reuse-delta", "--no-reuse-object", "--delta-base-offset")
        said = self._asked("pack-objects", "-q", *options, str(stem), stdin=stdin)
        pack = stem.with_name(f"{stem.name}-{said.decode().strip()}.pack")
        try:
            with open(pack, "rb") as source:
                self.project.run("index-pack", "--strict", "--stdin", stdin=source)
            words = ("rev-list", "--objects", "--quiet", "--stdin")
            self.project.run(*words, stdin=stdin)
        except GitFailed as failure:
            raise GitObjectsRefused(draft=self.draft.id, reason=failure.reason) from failure

    def make_branch(self) -> None:
        """Create the branch unless it exists with this tip."""
        if commit_at(self.project, self.ref) == self.tip:
            return
        note = f"holdfast: from draft {self.draft.id}"
        said = move_ref(self.project, self.ref, self.tip, old=None, note=note)
        if said:
            require_free(self.project, self.branch)
            raise GitFailed(command="update-ref", reason=said)

    def _compared(self, form: str) -> bytes:
        """Compare the tip with the merge base of the project's HEAD."""
        _, head = head_of(self.project)
        words = ("diff-tree", "-r", "-z", "--no-renames", "--no-commit-id", "--no-ext-diff", form)
        base = ""
        if head is not None:
            found = self.quarantine.answer("merge-base", head, self.tip, statuses=(0, 1, 128))
            base = found.stdout.decode().strip()
        if base:
            return self._asked(*words, base, self.tip)
        empty = self.quarantine.run("mktree", stdin=b"").decode().strip()
        return self._asked(*words, empty, self.tip)

    def _asked(self, *words: str, stdin: bytes = b"") -> bytes:
        try:
            return self.quarantine.run(*words, stdin=stdin)
        except GitFailed as failure:
            raise GitObjectsRefused(draft=self.draft.id, reason=failure.reason) from failure


def require_free(git: Git, branch: str) -> None:
    """Raise GitBranchInvalid or GitBranchExists unless the branch can be created."""
    ref = BRANCHES + os.fsencode(branch)
    is_odd = not branch or branch == "HEAD" or branch.startswith("-") or "\0" in branch
    if is_odd or git.answer("check-ref-format", ref, statuses=(0, 1)).returncode:
        raise GitBranchInvalid(branch=encodable(branch))
    listing = git.run("for-each-ref", "--format=%(refname)", BRANCHES).splitlines()
    for each in listing:
        if each == ref or each.startswith(ref + b"/") or ref.startswith(each + b"/"):
            existing = os.fsdecode(each.removeprefix(BRANCHES))
            raise GitBranchExists(branch=encodable(branch), existing=encodable(existing))


@contextmanager
def _transfers(
    workbench: Workbench, branch: str, draft: str | None
) -> Generator[tuple[WorkbenchHandle, list[_Transfer]]]:
    """Transfers of the project's repository and of each moved submodule."""
    with workbench.locked() as (handle, _), ExitStack() as stack:
        project = handle.context.project
        repository = find_repository(project)
        if repository.top != project:
            reason = f"it lies above the project, at {repository.top}, and no draft covers it"
            raise GitRepositoryRefused(project=handle.context.display_path, reason=reason)
        found = resolve_draft(handle, draft, with_git=True)
        view = stack.enter_context(opened(handle, found))
        scratch = stack.enter_context(scratch_in(handle.context.directory))
        work = _Work(handle, view, found, branch, scratch)
        transfers = [work.transfer(repository, "")]
        for path, commit in transfers[0].gitlinks():
            inside = project / os.fsdecode(path)
            try:
                below = find_repository(inside)
            except GitRepositoryMissing:
                continue
            if below.top == inside and below.directory != repository.directory:
                moved = work.submodule(below, os.fsdecode(path), commit)
                transfers += [moved] if moved is not None else []
        yield handle, transfers


@dataclass(frozen=True, slots=True)
class _Work:
    handle: WorkbenchHandle
    view: DraftView
    draft: Draft
    branch: str
    scratch: Path

    def transfer(self, repository: Repository, path: str, tip: str | None = None) -> _Transfer:
        number = len(list(self.scratch.iterdir()))
        inside = self.scratch / str(number)
        quarantine = inside / "quarantine"
        quarantine.mkdir(parents=True)
        project = clean_git(repository, inside)
        known = _known(project)
        with draft_repository(self.view, self.draft, repository) as source:
            git = quarantined(source, self.draft, repository, quarantine)
        found = tip or self._tip(git, project, known)
        return _Transfer(
            draft=self.draft,
            path=path,
            branch=self.branch,
            tip=found,
            known=known,
            quarantine=git,
            project=project,
        )

    def submodule(self, repository: Repository, path: str, commit: str) -> _Transfer | None:
        """The transfer of a commit of a submodule, if the project lacks it and the draft has it."""
        found = self.transfer(repository, path, commit)
        if commit_at(found.project, commit) or not self._commit(found.quarantine, commit.encode()):
            return None
        require_free(found.project, self.branch)
        return found

    def _commit(self, git: Git, name: bytes) -> str | None:
        """The commit that a name means in a draft."""
        try:
            return commit_at(git, name)
        except GitFailed as failure:
            raise GitObjectsRefused(draft=self.draft.id, reason=failure.reason) from failure

    def _tip(self, git: Git, project: Git, known: tuple[str, ...]) -> str:
        """The commit that the branch is to have, which is new to the project."""
        ref = BRANCHES + os.fsencode(self.branch)
        own, there = self._commit(git, ref), commit_at(project, ref)
        is_ours = there is not None and self.handle.records.outcome(_key(self.branch, there))
        if is_ours and there is not None:
            # It was taken before, maybe by a process that died then.
            return there
        require_free(project, self.branch)
        tip = own or self._commit(git, b"HEAD")
        if tip is not None and _is_new(git, tip, known):
            return tip
        listing = git.run("for-each-ref", "--format=%(objectname) %(refname)", BRANCHES)
        pairs = [line.split(b" ", 1) for line in listing.splitlines()]
        others = [
            encodable(os.fsdecode(ref.removeprefix(BRANCHES)))
            for id, ref in pairs
            if _is_new(git, id.decode(), known)
        ]
        listed = ", ".join(others[:_OTHERS_MAX])
        words = f" (it has some on {listed}: take a branch under its own name)" if others else ""
        raise GitCommitsMissing(draft=self.draft.id, others=words)


def _known(git: Git) -> tuple[str, ...]:
    """Commits that the refs of a repository point to."""
    listing = git.run("for-each-ref", "--format=%(objectname) %(*objectname) %(objecttype)")
    found: set[str] = set()
    for line in listing.decode("ascii", "replace").splitlines():
        *ids, kind = line.split()
        found |= {ids[-1]} if kind in {"commit", "tag"} else set()
    head = commit_at(git, "HEAD")
    return tuple(sorted(found | ({head} if head else set())))


def _is_new(git: Git, tip: str, known: tuple[str, ...]) -> bool:
    words = ("rev-list", "--count", "--max-count=1", "--stdin")
    done = git.answer(*words, stdin=without([tip], known), statuses=(0, 128))
    return done.returncode == 0 and done.stdout.strip() != b"0"
