"""What can be asked of drafts."""

from __future__ import annotations

from holdfast.cli.commands import PROJECT, Command, Option

JSON = Option(("--json",), "print JSON instead of a page")
WHICH = Option(
    ("--draft",),
    "which one, by the beginning of its id (otherwise: the one that has changes)",
    form="ID",
)
STAT = Option(("--stat",), "only which files, and how much of each")
DRAFT = (
    Command(
        name="draft",
        summary="work on a project without changing it",
        description="""\
A draft is a view of a project in which anything may be written, while the
project itself stays as it is. What was written can be looked at, undone step by
step, published into the project, or discarded.

Where the system can do it, a draft stands at the project's own path: a build in
it finds everything where it is. It costs milliseconds and no room, whatever the
size of the project; what you change in the project meanwhile is seen in it.""",
        examples=(
            ("holdfast draft run -- make", "run something in a draft, made if there is none"),
            ("holdfast draft diff", "what it would change"),
            ("holdfast publish", "let the project have it"),
            ("holdfast draft discard", "forget it"),
        ),
    ),
    Command(
        name="draft open",
        summary="begin a draft",
        description="""\
Begin another draft of the project; there may be several at once. Nothing of the
project is copied unless it must be: overlay lays a layer over it, reflink
shares what is the same, copy copies everything. auto takes the first of them
that works here, and says why a better one does not.""",
        examples=(
            ("holdfast draft open", "as cheap as it can be here"),
            ("holdfast draft open --mode copy", "on file systems, and for tools, that mind layers"),
        ),
        options=(
            Option(
                ("--mode",),
                "how it is kept apart from the project",
                values=("auto", "overlay", "reflink", "copy"),
                default="auto",
            ),
            JSON,
            PROJECT,
        ),
    ),
    Command(
        name="draft list",
        summary="the drafts of the project",
        description="""\
List the drafts of the project that have changes, the newest first: id, how it is
kept apart, age, and how often one can undo. One without changes is not listed,
and goes when its session ends.""",
        examples=(
            ("holdfast draft list", "a page"),
            ("holdfast draft list --json | jq -r .id", "their ids, for a program"),
        ),
        options=(JSON, PROJECT),
    ),
    Command(
        name="draft path",
        summary="where a draft can be looked at from outside",
        description="""\
Print a directory in which an editor or another program sees the draft as it is.
For an overlay it is valid as long as the draft's place is held. Write into a
draft with holdfast draft run, which leaves something to go back to.""",
        examples=(('ls "$(holdfast draft path)"', "what it looks like in there"),),
        options=(WHICH, JSON, PROJECT),
    ),
    Command(
        name="draft run",
        summary="run a command in a draft",
        description="""\
Run a command in the draft that has changes (or --draft; if none has, in the
newest, and one is made if there is none), as
holdfast exec does: its output to the last byte, your input, its exit status. It
outlives a lost connection. It runs where you are, in the draft: at the project's
own path with an overlay, else in the copy, and then a note says so.

Before it, the draft takes in what you changed in the project. After it, however
it ended, a revision is left that holdfast draft undo goes back to.

Ctrl-C interrupts the command; a second one leaves it running. With --tty all
keys go to it; Enter ~ . leaves it.

With --json its output comes as objects, as holdfast logs has them, and then
one of type run with its exit status and the revision.""",
        examples=(
            ("holdfast draft run -- make -j8", "build it; the project is not touched"),
            ("holdfast draft run --tty -- $SHELL", "look around, and try things"),
            ("holdfast draft run -- codex", "let an agent work there"),
        ),
        options=(
            Option(("-t", "--tty"), "give it a terminal, of the size of ours"),
            WHICH,
            JSON,
            PROJECT,
        ),
        rest=("CMD [ARG...]", "the command, as it is, without a shell"),
    ),
    Command(
        name="draft diff",
        summary="what a draft would change",
        description="""\
Show what publishing the draft would change in the project, for these paths or
for all, each change with the number that holdfast publish --hunk takes. Files
that also changed in the project are listed below it: those that can be merged,
and those in conflict.

What lines do not show is said above them: where links lead, modes, and which
files programs run by themselves. Files that git ignores are only counted.

On a terminal nothing in a file or a name can steer it; through a pipe the bytes
come as they are, whole, fit for git apply.""",
        examples=(
            ("holdfast draft diff", "all of it"),
            ("holdfast draft diff --stat", "which files, and how much of each"),
            ("holdfast draft diff src | less", "one directory"),
            ("holdfast draft diff | git -C ../other apply", "the same changes elsewhere"),
        ),
        options=(
            STAT,
            Option(("--git",), "also the project's own .git"),
            Option(("--ignored",), "also files that git ignores"),
            WHICH,
            JSON,
            PROJECT,
        ),
        argument=("[PATH...]", "only these, and what is below them"),
        is_many=True,
    ),
    Command(
        name="draft merge",
        summary="bring the project's newer files into a draft",
        description="""\
Where a file was changed in the draft and in the project, too, bring the project's
changes into the draft, for these paths or for all such files. Lines that both
changed stand there twice, between conflict markers: have them corrected in the
draft, then look at it and publish. A file counts as resolved from then on.

--ours keeps the draft's version, --theirs takes the project's; so it must be where
lines mean nothing, or one side has deleted the file. It leaves a revision that
holdfast draft undo takes back. The project is not touched.""",
        examples=(
            ("holdfast draft merge", "all conflicts, with markers where lines clash"),
            ("holdfast draft merge --theirs logo.png", "the project's version of one file"),
        ),
        options=(
            Option(("--ours",), "keep the draft's version"),
            Option(("--theirs",), "take the project's version"),
            WHICH,
            JSON,
            PROJECT,
        ),
        argument=("[PATH...]", "only these, and what is below them"),
        is_many=True,
    ),
    Command(
        name="draft show",
        summary="print a file as a draft, the project or the base has it",
        description="""\
Print one version of a file: the draft's, with --project the project's, with --base
the one that the draft's changes are counted from. On a terminal nothing in it can
steer that; through a pipe the bytes come as they are.""",
        examples=(
            ("holdfast draft show src/main.c", "as it is in the draft"),
            ("holdfast draft show --project src/main.c", "as it is in the project"),
        ),
        options=(
            Option(("--project",), "the project's version"),
            Option(("--base",), "the version that the draft's changes are counted from"),
            WHICH,
            JSON,
            Option(("-C",), "the project is there (otherwise: here, or above)", form="DIR"),
        ),
        argument=("PATH", "which file"),
    ),
    Command(
        name="draft undo",
        summary="go back to an earlier state of a draft",
        description="""\
Put the draft back to the state before the last command or batch, or to a
revision; 0 is the project as it is. That leaves a revision itself, so it can be
undone, too. The project is not touched.""",
        examples=(
            ("holdfast draft undo", "as it was before the last command"),
            ("holdfast draft undo --to 3", "as it was after revision 3"),
        ),
        options=(
            Option(("--to",), "the revision to go back to", form="REVISION"),
            WHICH,
            JSON,
            PROJECT,
        ),
    ),
    Command(
        name="draft discard",
        summary="forget a draft",
        description="""\
End everything that runs in the draft and remove it, with what was written there.
What that is, is shown first, and you are asked. The project is not touched.""",
        examples=(
            ("holdfast draft discard", "after a question"),
            ("holdfast draft discard --yes", "without one"),
        ),
        options=(Option(("-y", "--yes"), "do not ask"), WHICH, JSON, PROJECT),
    ),
)
