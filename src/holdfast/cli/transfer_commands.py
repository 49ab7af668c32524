"""What can be asked about taking conversations elsewhere."""

from __future__ import annotations

from holdfast.cli.commands import PROJECT, Command, Option

TRANSFER = (
    Command(
        name="fork",
        summary="go on with a conversation twice",
        description="""\
Make a new session that knows all that was said in another one, in a draft of its own
with the same content. From then on the two share nothing; Codex, which keeps what it
knows itself, goes on with a thread of its own. No turn may run in it.""",
        examples=(("holdfast fork h1x7abcd", "another way to go on"),),
        options=(Option(("--json",), "print one JSON object instead of text"),),
        argument=("[ID]", "its id, or the end or beginning of it (otherwise: the newest)"),
    ),
    Command(
        name="sessions export",
        summary="a session as a file that others may read",
        description="""\
Print a session as lines of JSON: the first says what it is about, each other is one
record of it. Keys and passwords are taken out: those that this machine knows by their
value, all others by how they look or by what they are called. A text of more than
64 KiB is cut off, and says so. Look through it before you pass it on.""",
        examples=(
            ("holdfast sessions export ID --output talk.jsonl", "a file; one that is there stays"),
            ("holdfast sessions export | jq -r .type", "the newest, for a program"),
        ),
        options=(Option(("--output",), "write to this new file", form="FILE"),),
        argument=("[ID]", "its id, or the end or beginning of it (otherwise: the newest)"),
    ),
    Command(
        name="sessions import",
        summary="go on with a conversation of another tool",
        description="""\
List what Codex or Claude Code keep of conversations about this project, or make a
session of one of them. Their files are read and never written by this; importing
twice is importing once. A conversation with Codex goes on in a draft, as the same
thread of Codex; one with Claude Code can be read and exported, for there is no
runner for it yet.""",
        examples=(
            ("holdfast sessions import codex", "which there are"),
            ("holdfast sessions import codex 0198c0de", "take this one over"),
            ("holdfast chat --resume ID", "and go on with it"),
        ),
        options=(Option(("--json",), "print one JSON object per line instead of text"), PROJECT),
        argument=("TOOL [ID]", "codex or claude, and the beginning of an id"),
        is_many=True,
    ),
)
