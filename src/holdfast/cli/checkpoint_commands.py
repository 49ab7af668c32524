"""What can be asked of checkpoints."""

from __future__ import annotations

from holdfast.cli.commands import PROJECT, Command, Option
from holdfast.cli.draft_commands import JSON, STAT

CHECKPOINT = (
    Command(
        name="checkpoint",
        summary="keep the project as it is, to go back to",
        description="""\
A checkpoint is the whole project at one moment: tracked or not, ignored or not,
modes, links, empty directories, times. It is on the disk when the command ends.
What could not be kept is listed with the reason, and is never touched by a
restore. Before every publication and restore one is made by itself.""",
        examples=(
            ("holdfast checkpoint create -m 'before the big change'", "make one"),
            ("holdfast checkpoint list", "what there is to go back to"),
            ("holdfast restore ID", "go back"),
        ),
    ),
    Command(
        name="checkpoint create",
        summary="make a checkpoint",
        description="""\
Keep the project as it is now. Only what is new since the last one takes time and
room. Interrupted, it is as if it had not been asked for.""",
        examples=(
            ("holdfast checkpoint create", "now"),
            ("holdfast checkpoint create -m 'tests are green'", "with a word about it"),
        ),
        options=(
            Option(("-m", "--message"), "a word about it", form="TEXT"),
            JSON,
            PROJECT,
        ),
    ),
    Command(
        name="checkpoint list",
        summary="what there is to go back to",
        description="""\
List the checkpoints of the project, the newest first: id, age, occasion, number
of files, and the word about it. Those that are made by themselves, whenever a
draft is looked at, are left out unless you ask for --all.""",
        examples=(
            ("holdfast checkpoint list", "a page"),
            ("holdfast checkpoint list --json | head -1 | jq -r .id", "the id of the last one"),
        ),
        options=(Option(("--all",), "also those that were made by themselves"), JSON, PROJECT),
    ),
    Command(
        name="checkpoint show",
        summary="what a checkpoint holds, and what it does not",
        description="""\
Show when and why a checkpoint was made, how much is in it, and every path that it
does not cover, with the reason.""",
        examples=(("holdfast checkpoint show cp_01jb", "the beginning of an id is enough"),),
        options=(JSON, PROJECT),
        argument=("ID", "which one, by the beginning of its id"),
    ),
    Command(
        name="checkpoint diff",
        summary="what changed since a checkpoint, or between two",
        description="""\
Show what changed from one checkpoint to another, or to the project as it is now:
with one checkpoint, or with the word now. More words are paths to look at; after
one checkpoint alone write now before them.""",
        examples=(
            ("holdfast checkpoint diff cp_01jb", "what you did since"),
            ("holdfast checkpoint diff cp_01jb cp_01jc --stat src", "which files, in src"),
        ),
        options=(STAT, JSON, PROJECT),
        argument=("A [B] [PATH...]", "one or two checkpoints (the second may be: now), and paths"),
        is_many=True,
    ),
    Command(
        name="restore",
        summary="put the project back to a checkpoint",
        description="""\
Make the project what it was at a checkpoint, or only these paths of it. What would
come back, change and go is listed first, and you are asked; without a terminal
nothing is done unless you say --yes. Files that were made since the checkpoint go,
unless you say --keep-new. First the project as it is now is kept, so this can be
undone: the page says how. All of it is done or nothing; killed in the middle, the
next command finishes or undoes it.

What the checkpoint does not cover is not touched, and neither is .git, unless
you say so. Drafts stay as they are.""",
        examples=(
            ("holdfast restore cp_01jb", "all of it, after a question"),
            ("holdfast restore cp_01jb --keep-new", "but let files stay that were made since"),
            ("holdfast restore cp_01jb --only src/main.c docs", "one file and one directory"),
        ),
        options=(
            Option(("--only",), "only these, and what is below them", form="PATH", is_many=True),
            Option(("--keep-new",), "let files stay that were made since the checkpoint"),
            Option(("--git",), "also the project's own .git"),
            Option(("-y", "--yes"), "do not ask"),
            JSON,
            PROJECT,
        ),
        argument=("ID", "which checkpoint, by the beginning of its id"),
    ),
)
