"""What can be asked of a project that has drafts: where it stands, and to publish one."""

from __future__ import annotations

from holdfast.cli.commands import PROJECT, Command, Option
from holdfast.cli.draft_commands import JSON, WHICH

PUBLISH = (
    Command(
        name="publish",
        summary="let the project have what a draft changed",
        description="""\
Bring the changes of the draft that has some (or --draft) into the project: all
of them, or none. They are shown first, and you are asked. A checkpoint of the
project is made before; killed in the middle, the next command finishes or undoes
it. The draft stays, with what was not published. Files that git ignores stay
there, too, unless you say --ignored or name them (--only).

A file that changed in the project, too, is never overwritten in passing. Where
both changes fit together they are merged in the draft, and you look at it again.
Else nothing is published; merge it in the draft (holdfast draft merge), say for
each such file that the draft's is to be taken (--force), or leave it out (--only).

With --commit what is published becomes one git commit on the branch that you are
on. With --branch no file of the project changes: the commits that were made in
the draft become a branch of its repository. Both run no hook, no filter and no
other program of the repository, and sign nothing.""",
        examples=(
            ("holdfast publish", "everything, after a question"),
            ("holdfast publish --only src docs/a.md --yes", "some of it, without one"),
            ("holdfast publish --hunk 2:src/main.c", "one change of one file"),
            ("holdfast publish --commit -m 'Fix the parser'", "and make one commit of it"),
            ("holdfast publish --branch fix", "the agent's commits, as the branch fix"),
            (
                "holdfast publish --force notes.txt",
                "the draft's notes.txt, whatever the project has",
            ),
        ),
        options=(
            Option(("--only",), "only these, and what is below them", form="PATH", is_many=True),
            Option(
                ("--hunk",),
                "only this change of a file, as holdfast draft diff numbers it",
                form="N:PATH",
                is_repeated=True,
            ),
            Option(
                ("--force",),
                "take the draft's, though the project's has changed",
                form="PATH",
                is_many=True,
            ),
            Option(("--commit",), "make one git commit of what is published"),
            Option(("-m", "--message"), "with --commit: its message", form="TEXT"),
            Option(
                ("--branch",),
                "only take the draft's own commits, as a new branch of this name",
                form="NAME",
            ),
            Option(("--git",), "also the project's own .git"),
            Option(("--ignored",), "also files that git ignores"),
            Option(("-y", "--yes"), "do not ask"),
            WHICH,
            JSON,
            PROJECT,
        ),
    ),
    Command(
        name="status",
        summary="where the project stands",
        description="""\
Show, without a network, where the project stands: its drafts and what each would
change, what is in conflict, what there is to go back to, what went wrong last
and what can be done about it.""",
        examples=(
            ("holdfast status", "a page"),
            ("holdfast status --json | jq '.drafts[].changed'", "for a program"),
        ),
        options=(JSON, PROJECT),
    ),
    Command(
        name="recover",
        summary="finish or undo what was interrupted",
        description="""\
Finish or undo a publication, a restore or a change of a draft that was cut short
by a crash or a power loss, and say which. Every other command does this first by
itself.""",
        examples=(("holdfast recover", "see that nothing is half done"),),
        options=(JSON, PROJECT),
    ),
    Command(
        name="storage",
        summary="how much room is used, and how to get some back",
        description="""\
Show how much space the checkpoints of the project take. With --prune, remove old
automatic ones; those that you made with `checkpoint create` only with --manual.
The last publication and the last restore can always be undone, and no draft ever
loses anything. At least 1,000 are kept where there is room.""",
        examples=(
            ("holdfast storage", "how much"),
            ("holdfast storage --prune --dry-run --quota 2G", "what would go, to stay below that"),
            ("holdfast storage --prune --quota 2G", "remove them"),
        ),
        options=(
            Option(("--prune",), "remove what is too much"),
            Option(("--dry-run",), "with --prune: only say what would go"),
            Option(
                ("--quota",),
                "with --prune: how much may stay, such as 500M or 2G",
                form="SIZE",
            ),
            Option(("--manual",), "with --prune: also old ones that you made by hand"),
            JSON,
            PROJECT,
        ),
    ),
)
