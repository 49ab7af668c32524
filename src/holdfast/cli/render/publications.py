"""Lay out what a publication or a restore has done, for a person and for a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.cli.render.changes import path_lines
from holdfast.cli.render.drafts import SCHEMA
from holdfast.cli.render.style import Look, Tone
from holdfast.nouns import RelativePath, printable
from holdfast.workbench.model import Committed

ASK = "Publish this? [y/N] "
ASK_COMMIT = "Publish this, and commit it? [y/N] "
ASK_DISCARD = "Discard all of this? [y/N] "
_ID = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What was done to a project: at how many paths, and the first of them.

    `undo` is the checkpoint that was made before: restoring it takes this back. `rescued` is
    content that another program wrote meanwhile, now in the store, `left` paths not touched because
    it is not covered, or, if a restore `keeps_new`, because it is new. `removed` of the paths went.
    `ignored` of what remains is not published because git ignores it.
    `with_git`: some of it is in the project's own repository.
    """

    deed: str
    key: str
    undo: str | None
    paths: tuple[RelativePath, ...]
    count: int
    draft: str | None = None
    restored: str | None = None
    remaining: int | None = None
    rescued: tuple[RelativePath, ...] = ()
    left: tuple[RelativePath, ...] = ()
    with_git: bool = False
    commit: Committed | None = None
    ignored: int = 0
    removed: int = 0
    keeps_new: bool = False

    @property
    def undo_command(self) -> str | None:
        """The command that takes all of it back."""
        if not self.paths or not self.undo:
            return None
        return f"holdfast restore {self.undo}{' --git' if self.with_git else ''}"

    @property
    def undo_commit_command(self) -> str | None:
        """The command for git that takes the commit back.

        It refuses if the branch has a later commit, and leaves what else is staged as it is.
        """
        made = self.commit
        if made is None or made.id is None or made.problem:
            return None
        new, old = made.id[:_ID], (made.parent or "")[:_ID]
        if old:
            return f"git update-ref HEAD {old} {new} && git read-tree -i -m {new} {old}"
        empty = "$(git hash-object -t tree /dev/null)"
        return f"git update-ref -d HEAD {new} && git read-tree -i -m {new} {empty}"


def done_page(done: Done, look: Look) -> str:
    """What was done, what was not, and how to take it back."""
    sign = look.paint(look.signs.good, Tone.GOOD)
    return f"{sign} {look.paint(_head(done), Tone.STRONG)}\n" + "".join(_rest(done, look))


def done_record(done: Done) -> dict[str, object]:
    """The same for a program."""
    return {
        "schema": SCHEMA,
        "type": done.deed,
        "key": done.key,
        "draft": done.draft,
        "restored": done.restored,
        "checkpointBefore": done.undo,
        "paths": list(map(str, done.paths)),
        "count": done.count,
        **({"removed": done.removed} if done.deed == "restore" else {}),
        "remaining": done.remaining,
        "ignored": done.ignored,
        "rescued": list(map(str, done.rescued)),
        "notTouched": list(map(str, done.left)),
        "undo": done.undo_command,
        **({} if done.commit is None else _commit_record(done, done.commit)),
    }


def _commit_record(done: Done, commit: Committed) -> dict[str, object]:
    return {
        "commit": commit.id,
        "branch": commit.branch,
        "notInCommit": list(map(str, commit.left_out)),
        "committedWhole": list(map(str, commit.whole)),
        "undoCommit": done.undo_commit_command,
    }


def _commit_lines(commit: Committed, look: Look) -> Iterator[str]:
    if commit.id is None:
        yield _wrapped("No commit was made: nothing that git records has changed.", look)
    else:
        where = "a detached HEAD" if commit.branch is None else printable(commit.branch)
        yield _wrapped(f"Commit {commit.id[:_ID]} on {where}", look)
    for paths, words in (
        (commit.left_out, "Not in the commit: in .git, in a submodule or in a nested repository"),
        (commit.whole, "In the commit with changes of yours that were not committed before:"),
    ):
        if paths:
            yield _wrapped(words, look)
            yield path_lines(paths, look)


def _head(done: Done) -> str:
    count = f"{done.count:,} path{'' if done.count == 1 else 's'}"
    if done.deed == "publish":
        return f"Published {count}" if done.count else "Nothing to publish"
    return f"Restored {count}" if done.count else "Nothing to restore"


def _rest(done: Done, look: Look) -> Iterator[str]:
    if not done.paths:
        yield _wrapped("The project is like that already.", look)
    else:
        yield path_lines(done.paths, look, count=done.count)
    if done.removed:
        was, is_ = ("was", "is") if done.removed == 1 else ("were", "are")
        yield _wrapped(f"{done.removed:,} of these {was} made since then and {is_} removed.", look)
    if done.commit is not None:
        yield from _commit_lines(done.commit, look)
    left = (done.remaining or 0) - done.ignored
    if left > 0:
        yield _wrapped(f"{left:,} more in the draft; holdfast draft diff shows it.", look)
    if done.ignored:
        count = f"{done.ignored:,} path{'' if done.ignored == 1 else 's'}"
        yield _wrapped(f"In the draft, ignored by git: {count} (--ignored publishes them).", look)
    why = "new or not covered" if done.keeps_new else "not covered"
    for paths, words in (
        (done.rescued, "Content that another program wrote meanwhile is in the store:"),
        (done.left, f"Not touched, because they are {why}:"),
    ):
        if paths:
            yield _wrapped(words, look)
            yield path_lines(paths, look)
    if done.undo_command is not None:
        yield _wrapped(f"{look.signs.leads_to} To take it back:", look)
        yield f"    {printable(done.undo_command)}\n"
    if done.undo_commit_command is not None:
        yield _wrapped(f"{look.signs.leads_to} To take the commit back:", look)
        yield f"    {done.undo_commit_command}\n"


def conflicts_page(
    conflicts: Sequence[tuple[RelativePath, str]], merges: Sequence[RelativePath], look: Look
) -> str:
    """What of a draft meets changes of the project, and what can be done."""
    lines = ""
    if merges:
        sign = look.paint(look.signs.careful, Tone.CAREFUL)
        lines += (
            f"{sign} Changed in the project, too; publishing merges these in the draft first:\n"
        )
        lines += path_lines(merges, look)
    if conflicts:
        sign = look.paint(look.signs.bad, Tone.BAD)
        lines += f"{sign} In conflict with the project:\n"
        lines += "".join(
            f"    {printable(str(path))}  ({printable(reason)})\n" for path, reason in conflicts
        )
        lines += _wrapped(
            f"{look.signs.leads_to} holdfast draft merge PATH brings the project's into the draft; "
            "holdfast publish --force PATH takes the draft's; --only leaves them out.",
            look,
        )
    return lines


def overwritten_page(paths: Sequence[RelativePath], look: Look) -> str:
    """What of the project goes although it was changed there, if it is agreed to."""
    if not paths:
        return ""
    sign = look.paint(look.signs.careful, Tone.CAREFUL)
    return (
        f"{sign} Changed in the project, too; a checkpoint keeps that:\n{path_lines(paths, look)}"
    )


def _wrapped(text: str, look: Look) -> str:
    return "".join(f"{line}\n" for line in look.wrap(text, indent=2))


# Lay out what became of a transaction that was cut short, for a person and for a program.


@dataclass(frozen=True, slots=True, kw_only=True)
class Righted:
    """Something that was found half done, and is not any more."""

    what: str  # the project, or the id of a draft
    is_finished: bool  # else it was undone
    theirs: tuple[RelativePath, ...] = ()
    rescued: tuple[RelativePath, ...] = ()
    commit: Committed | None = None  # the one that it was to make


def recovered_page(found: Sequence[Righted], look: Look) -> str:
    """What was finished and what was undone; nothing if nothing was half done."""
    return "".join(_one(each, look) for each in found)


def recovered_record(found: Sequence[Righted]) -> dict[str, object]:
    """The same for a program."""
    return {"schema": SCHEMA, "type": "recovery", "recovered": righted_records(found)}


def righted_records(found: Sequence[Righted]) -> list[dict[str, object]]:
    """Each of them for a program."""
    return [
        {
            "what": each.what,
            "way": "finished" if each.is_finished else "undone",
            "changedMeanwhile": list(map(str, each.theirs)),
            "rescued": list(map(str, each.rescued)),
            **_recovered_commit(each.commit),
        }
        for each in found
    ]


def _one(each: Righted, look: Look) -> str:
    sign = look.paint(look.signs.careful, Tone.CAREFUL)
    where = "the project" if each.what == "project" else printable(each.what)
    how = "was finished" if each.is_finished else "was undone: nothing of it is left"
    lines = look.wrap(f"{sign} An interrupted change of {where} {how}.", indent=0)
    page = "".join(f"{line}\n" for line in lines)
    for paths, words in (
        (each.theirs, "Changed by another program, and left unchanged:"),
        (each.rescued, "What was written here meanwhile is in the store:"),
    ):
        if paths:
            page += f"  {words}\n{path_lines(paths, look)}"
    return page + _commit_line(each.commit, look)


def _recovered_commit(commit: Committed | None) -> dict[str, object]:
    if commit is None or commit.id is None:
        return {}
    return {
        "commit": None if commit.problem else commit.id,
        "commitProblem": commit.problem or None,
    }


def _commit_line(commit: Committed | None, look: Look) -> str:
    if commit is None or commit.id is None:
        return ""
    text = (
        f"Its commit was not made: {printable(commit.problem)}. Commit the files with git."
        if commit.problem
        else f"Its commit is {commit.id[:12]}."
    )
    return "".join(f"{line}\n" for line in look.wrap(text, indent=2))
