"""Declarations of the commands for drafts, publishing and checkpoints."""

from __future__ import annotations

from holdfast.cli.declarations import PROJECT, Command, Option

JSON = Option(("--json",), "print JSON instead of a page")
WHICH = Option(
    ("--draft",),
    "the draft, by the beginning of its id (default: the one that has changes)",
    form="ID",
)
STAT = Option(("--stat",), "list only the files, with the number of changed lines")
DRAFT = (
    Command(
        name="draft",
        summary="work on a project without changing it",
        description="""\
A draft is a writable view of a project; the project itself does not change. You can
review the changes, undo them step by step, publish them to the project, or discard
them.

Where the system supports it, a draft is mounted at the project's own path, so that
builds find every file at its usual place. It then takes milliseconds and no disk
space, whatever the size of the project, and shows later changes of the project.""",
        examples=(
            ("holdfast draft run -- make", "run a command in a draft; creates one if necessary"),
            ("holdfast draft diff", "show what publishing would change"),
            ("holdfast publish", "apply the changes to the project"),
            ("holdfast draft discard", "delete the draft"),
        ),
    ),
    Command(
        name="draft open",
        summary="create a draft",
        description="""\
Create another draft of the project; there may be several at once. The project is
copied only if necessary: overlay mounts a layer over it, reflink shares unchanged
file content, copy copies everything. auto uses the first of them that works here,
and prints why a better one does not.""",
        examples=(
            ("holdfast draft open", "use the cheapest mode that works here"),
            (
                "holdfast draft open --mode copy",
                "for file systems and tools that do not work with overlays",
            ),
        ),
        options=(
            Option(
                ("--mode",),
                "how the draft is separated from the project",
                values=("auto", "overlay", "reflink", "copy"),
                default="auto",
            ),
            JSON,
            PROJECT,
        ),
    ),
    Command(
        name="draft list",
        summary="list drafts of the project",
        description="""\
List the drafts of the project that have changes, the newest first: id, mode, age, and
number of undo steps. A draft without changes is not listed, and is deleted when its
session ends.""",
        examples=(
            ("holdfast draft list", "print a table"),
            ("holdfast draft list --json | jq -r .id", "print the ids only"),
        ),
        options=(JSON, PROJECT),
    ),
    Command(
        name="draft path",
        summary="print a directory that shows a draft",
        description="""\
Print a directory in which an editor or another program sees the content of the draft.
For an overlay the directory is valid as long as the draft is mounted. To change a
draft use holdfast draft run, which records a revision that can be undone.""",
        examples=(('ls "$(holdfast draft path)"', "list the files of the draft"),),
        options=(WHICH, JSON, PROJECT),
    ),
    Command(
        name="draft run",
        summary="run a command in a draft",
        description="""\
Run a command in the draft that has changes (or in --draft; if none has changes, in
the newest; if there is none, in a new one). It works like holdfast exec: complete
output, your input, its exit status, and it survives a lost connection. The working
directory is yours, inside the draft: at the project's own path with an overlay,
otherwise in the copy, which a note points out.

Before the command the draft takes over your changes of the project. After it, however
it ended, a revision is recorded that holdfast draft undo can return to.

Ctrl-C interrupts the command; a second one leaves it running. With --tty all keys go
to the command; Enter ~ . leaves it running.

With --json the output is printed as objects, like holdfast logs --json, followed by
one of type run with the exit status and the revision.""",
        examples=(
            ("holdfast draft run -- make -j8", "build in the draft; the project does not change"),
            ("holdfast draft run --tty -- $SHELL", "work in the draft with a shell"),
            ("holdfast draft run -- codex", "run an agent in the draft"),
        ),
        options=(
            Option(("-t", "--tty"), "allocate a terminal of the same size"),
            WHICH,
            JSON,
            PROJECT,
        ),
        rest=("CMD [ARG...]", "the command and its arguments; no shell interprets them"),
    ),
    Command(
        name="draft diff",
        summary="show what publishing a draft would change",
        description="""\
Show what publishing the draft would change in the project, for these paths or for
all. Each hunk has the number that holdfast publish --hunk takes. Files that also
changed in the project are listed at the end: those that can be merged, and those in
conflict.

Changes that lines do not show are listed above them: link targets, modes, and files
that programs run automatically. Files that git ignores are only counted.

On a terminal control characters are escaped; in a pipe the bytes are unchanged and
complete, as git apply needs them.""",
        examples=(
            ("holdfast draft diff", "show all changes"),
            ("holdfast draft diff --stat", "list changed files only"),
            ("holdfast draft diff src | less", "show changes of one directory"),
            ("holdfast draft diff | git -C ../other apply", "apply the same changes elsewhere"),
        ),
        options=(
            STAT,
            Option(("--git",), "include the project's own .git"),
            Option(("--ignored",), "include files that git ignores"),
            WHICH,
            JSON,
            PROJECT,
        ),
        argument=("[PATH...]", "only these paths and everything below them"),
        is_many=True,
    ),
    Command(
        name="draft merge",
        summary="resolve conflicts with newer changes of the project",
        description="""\
Merge the project's changes into the draft where both changed the same file, for these
paths or for all such files. Lines that both changed are written between conflict
markers: edit them in the draft, then review and publish. From then on the file counts
as resolved.

--ours keeps the draft's version, --theirs takes the project's; one of them is needed
for binary files and where one side deleted the file. The merge is recorded as a
revision that holdfast draft undo can take back. The project does not change.""",
        examples=(
            ("holdfast draft merge", "merge all files, with markers at conflicting lines"),
            ("holdfast draft merge --theirs logo.png", "take the project's version of one file"),
        ),
        options=(
            Option(("--ours",), "keep the draft's version"),
            Option(("--theirs",), "take the project's version"),
            WHICH,
            JSON,
            PROJECT,
        ),
        argument=("[PATH...]", "only these paths and everything below them"),
        is_many=True,
    ),
    Command(
        name="draft show",
        summary="print the draft's, the project's or the base version of a file",
        description="""\
Print one version of a file: the draft's; with --project the project's; with --base
the version that the draft's changes are relative to. On a terminal control characters
are escaped; in a pipe the bytes are unchanged.""",
        examples=(
            ("holdfast draft show src/main.c", "print the draft's version"),
            ("holdfast draft show --project src/main.c", "print the project's version"),
        ),
        options=(
            Option(("--project",), "print the project's version"),
            Option(("--base",), "print the version that the draft's changes are relative to"),
            WHICH,
            JSON,
            Option(
                ("-C",),
                "use the project in DIR (default: the current directory or one above)",
                form="DIR",
            ),
        ),
        argument=("PATH", "the file"),
    ),
    Command(
        name="draft undo",
        summary="undo changes of a draft",
        description="""\
Return the draft to the state before the last command or batch of changes, or to a
revision; 0 is the unchanged project. This records a revision itself, so that it can
be undone, too. The project does not change.""",
        examples=(
            ("holdfast draft undo", "undo the last command"),
            ("holdfast draft undo --to 3", "return to revision 3"),
        ),
        options=(
            Option(("--to",), "the revision to return to", form="REVISION"),
            WHICH,
            JSON,
            PROJECT,
        ),
    ),
    Command(
        name="draft discard",
        summary="delete a draft",
        description="""\
End the processes in the draft and delete it with all its changes. The changes are
shown first, and you are asked to confirm. The project does not change.""",
        examples=(
            ("holdfast draft discard", "ask for confirmation"),
            ("holdfast draft discard --yes", "do not ask for confirmation"),
        ),
        options=(Option(("-y", "--yes"), "do not ask for confirmation"), WHICH, JSON, PROJECT),
    ),
)


PUBLISH = (
    Command(
        name="publish",
        summary="apply the changes of a draft to the project",
        description="""\
Apply the changes of the draft that has some (or of --draft) to the project: all of
them, or none. They are shown first, and you are asked to confirm. A checkpoint of the
project is created before; if the command is killed, the next one finishes or undoes
it. The draft remains, with whatever was not published. Files that git ignores are not
published, unless you add --ignored or name them (--only).

A file that also changed in the project is never overwritten silently. If both changes
can be merged, they are merged in the draft, and you review it again. Otherwise nothing
is published: merge in the draft (holdfast draft merge), take the draft's version of
each such file (--force), or leave it out (--only).

--commit makes one git commit of the published changes on the current branch.
--branch does not change files of the project: commits that were made in the draft
become a branch of its repository. Neither runs hooks, filters or other programs of
the repository, and neither signs commits.""",
        examples=(
            ("holdfast publish", "publish everything, after confirmation"),
            ("holdfast publish --only src docs/a.md --yes", "publish some paths, without asking"),
            ("holdfast publish --hunk 2:src/main.c", "publish one hunk of one file"),
            ("holdfast publish --commit -m 'Fix the parser'", "publish and commit"),
            ("holdfast publish --branch fix", "make the branch fix of the agent's commits"),
            (
                "holdfast publish --force notes.txt",
                "overwrite notes.txt although the project changed it",
            ),
        ),
        options=(
            Option(
                ("--only",), "only these paths and everything below them", form="PATH", is_many=True
            ),
            Option(
                ("--hunk",),
                "only this hunk, by its number in holdfast draft diff",
                form="N:PATH",
                is_repeated=True,
            ),
            Option(
                ("--force",),
                "take the draft's version although the project changed, too",
                form="PATH",
                is_many=True,
            ),
            Option(("--commit",), "make one git commit of the published changes"),
            Option(("-m", "--message"), "with --commit: the commit message", form="TEXT"),
            Option(
                ("--branch",),
                "only create this branch from commits made in the draft",
                form="NAME",
            ),
            Option(("--git",), "include the project's own .git"),
            Option(("--ignored",), "include files that git ignores"),
            Option(("-y", "--yes"), "do not ask for confirmation"),
            WHICH,
            JSON,
            PROJECT,
        ),
    ),
    Command(
        name="status",
        summary="show drafts, conflicts and checkpoints of the project",
        description="""\
Show the state of the project: its drafts and what each would change, conflicts,
checkpoints, the last failure and what can be done about it. This needs no network.""",
        examples=(
            ("holdfast status", "print a table"),
            ("holdfast status --json | jq '.drafts[].changed'", "as JSON"),
        ),
        options=(JSON, PROJECT),
    ),
    Command(
        name="recover",
        summary="finish or undo an interrupted operation",
        description="""\
Finish or undo a publication, a restore or a change of a draft that a crash or power
loss interrupted, and print which. Every other command does this first by itself.""",
        examples=(("holdfast recover", "recover now"),),
        options=(JSON, PROJECT),
    ),
    Command(
        name="storage",
        summary="show and reduce disk usage",
        description="""\
Show how much disk space the checkpoints of the project use. With --prune, delete old
automatic ones; those that you made with `checkpoint create` only with --manual. The
last publication and the last restore can always be undone, and drafts lose nothing.
At least 1,000 checkpoints are kept if the quota allows it.""",
        examples=(
            ("holdfast storage", "show disk usage"),
            ("holdfast storage --prune --dry-run --quota 2G", "list what would be deleted"),
            ("holdfast storage --prune --quota 2G", "delete old checkpoints"),
        ),
        options=(
            Option(("--prune",), "delete old checkpoints"),
            Option(("--dry-run",), "with --prune: only list what would be deleted"),
            Option(
                ("--quota",),
                "with --prune: the space to stay below, such as 500M or 2G",
                form="SIZE",
            ),
            Option(("--manual",), "with --prune: also delete old ones that you created"),
            JSON,
            PROJECT,
        ),
    ),
)


CHECKPOINT = (
    Command(
        name="checkpoint",
        summary="create, list and compare checkpoints",
        description="""\
A checkpoint is a snapshot of the whole project: tracked or not, ignored or not, with
modes, links, empty directories and times. It is durable when the command ends. Paths
that could not be saved are listed with the reason, and a restore never touches them.
Every publication and restore creates one first.""",
        examples=(
            ("holdfast checkpoint create -m 'before the big change'", "create a checkpoint"),
            ("holdfast checkpoint list", "list checkpoints"),
            ("holdfast restore ID", "restore a checkpoint"),
        ),
    ),
    Command(
        name="checkpoint create",
        summary="create a checkpoint of the project",
        description="""\
Save the current state of the project. Only content that is new since the last
checkpoint takes time and space. An interrupted command leaves no checkpoint.""",
        examples=(
            ("holdfast checkpoint create", "without a message"),
            ("holdfast checkpoint create -m 'tests are green'", "with a message"),
        ),
        options=(
            Option(("-m", "--message"), "a message to describe it", form="TEXT"),
            JSON,
            PROJECT,
        ),
    ),
    Command(
        name="checkpoint list",
        summary="list checkpoints",
        description="""\
List the checkpoints of the project, the newest first: id, age, reason, number of files
and message. Those that are created automatically whenever a draft is reviewed are
listed only with --all.""",
        examples=(
            ("holdfast checkpoint list", "print a table"),
            (
                "holdfast checkpoint list --json | head -1 | jq -r .id",
                "print the id of the last one",
            ),
        ),
        options=(
            Option(("--all",), "include those that were created automatically"),
            JSON,
            PROJECT,
        ),
    ),
    Command(
        name="checkpoint show",
        summary="show what a checkpoint contains and what it leaves out",
        description="""\
Show when and why a checkpoint was created, how much it contains, and every path that
it leaves out, with the reason.""",
        examples=(("holdfast checkpoint show cp_01jb", "the beginning of an id is enough"),),
        options=(JSON, PROJECT),
        argument=("ID", "the checkpoint, by the beginning of its id"),
    ),
    Command(
        name="checkpoint diff",
        summary="show changes since a checkpoint, or between two",
        description="""\
Show changes from one checkpoint to another, or to the current project: with one
checkpoint, or with the word now. Further words are paths; after a single checkpoint,
write now before them.""",
        examples=(
            ("holdfast checkpoint diff cp_01jb", "show changes since then"),
            ("holdfast checkpoint diff cp_01jb cp_01jc --stat src", "list changed files in src"),
        ),
        options=(STAT, JSON, PROJECT),
        argument=("A [B] [PATH...]", "one or two checkpoints (the second may be: now), and paths"),
        is_many=True,
    ),
    Command(
        name="restore",
        summary="restore a checkpoint",
        description="""\
Restore the project, or only some paths, to a checkpoint. Files that would be added,
changed and deleted are listed first, and you are asked to confirm; without a terminal
nothing is done unless you add --yes. Files created since the checkpoint are deleted,
unless you add --keep-new. The current state is saved first, so that the restore can be
undone: the output shows how. Everything is restored or nothing; if the command is
killed, the next one finishes or undoes it.

Paths that the checkpoint leaves out are not touched, and neither is .git, unless you
add --git. Drafts do not change.""",
        examples=(
            ("holdfast restore cp_01jb", "restore everything, after confirmation"),
            ("holdfast restore cp_01jb --keep-new", "keep files created since"),
            (
                "holdfast restore cp_01jb --only src/main.c docs",
                "restore one file and one directory",
            ),
        ),
        options=(
            Option(
                ("--only",), "only these paths and everything below them", form="PATH", is_many=True
            ),
            Option(("--keep-new",), "keep files created since the checkpoint"),
            Option(("--git",), "include the project's own .git"),
            Option(("-y", "--yes"), "do not ask for confirmation"),
            JSON,
            PROJECT,
        ),
        argument=("ID", "the checkpoint, by the beginning of its id"),
    ),
)
