"""What can be asked of drafts."""

from __future__ import annotations

from holdfast.cli.declarations import PROJECT, Command, Option

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


# What can be asked of a project that has drafts: where it stands, and to publish one.

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


# What can be asked of checkpoints.

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
