"""What can be asked about taking conversations elsewhere."""

from __future__ import annotations

from holdfast.cli.commands import Command, Option

TRANSFER = (
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
)
