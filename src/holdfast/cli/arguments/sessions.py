"""What can be asked of sessions with an agent."""

from __future__ import annotations

from holdfast.cli.declarations import CHOOSE, PROJECT, Command, Option

_JSON = Option(("--json",), "print one JSON object per line instead of text")
_EFFORT = Option(
    ("--effort",),
    "how hard the model of native thinks: none, minimal, low, medium, high, xhigh, max",
    form="WORD",
)
_DEMO = Option(("--demo",), "use the scripted agent, which needs no key: --runner rehearsal")
SESSION = (
    Command(
        name="ask",
        summary="have an agent take a turn in a draft of this project",
        description="""\
Have an agent take one turn. It works in a draft: the project stays as it is until
you publish. What the agent says goes to standard output, what it does to standard
error, a line each.

The turn belongs to a process of its own. If this terminal goes away, the turn
goes on; if that process, the agent or the server behind it dies, it is said, and
the conversation is taken up again from what was written down.

With --json or without a terminal nobody is there to answer: what the
agent asks leave for is refused then, and that is said. With --in-place the project
has what the turn did as soon as it has completed, after a checkpoint; a turn that
fails or is interrupted leaves it as it is.

native is our own agent: --model PROVIDER/MODEL starts it, with a key of the provider
in the environment or entered by holdfast login. codex has to be installed and signed
in. Both send what they read of the project to a model: you are asked once for each
project and provider, or say so with --consent. The last choice is remembered. --demo
starts a scripted agent (rehearsal) that needs no key and no network; without --demo
it only starts in the sample project of holdfast demo.""",
        examples=(
            ('holdfast ask "Mend the failing test"', "by the agent that you chose last"),
            (
                'holdfast ask --model openai/gpt-5.1 "Mend the failing test"',
                "by our own agent",
            ),
            ('holdfast ask --demo "Mend the failing test"', "by the scripted agent"),
            ('holdfast ask --runner codex "Mend the failing test"', "by Codex"),
            ('holdfast ask --session h1x7abcd "And now the docs"', "go on with a conversation"),
            ("holdfast ask - < task.md", "the prompt is in a file"),
            ('holdfast ask --json "List the TODOs" | tail -1 | jq -r .text', "the last message"),
        ),
        options=(
            Option(("--json",), "print one JSON object per line; the last one is the result"),
            Option(
                ("--runner",),
                "the agent: native, codex or rehearsal (otherwise: the last one)",
                form="NAME",
            ),
            _DEMO,
            Option(("--session",), "go on with this session", form="ID"),
            Option(("--in-place",), "publish what the turn did when it has completed"),
            Option(
                ("--consent",), "agree that the agent's model may see this project, from now on"
            ),
            Option(("--draft",), "work in this draft (otherwise: a new one)", form="ID"),
            Option(
                ("--scenario",),
                "the script of the rehearsal, or of the model of native",
                form="FILE",
            ),
            Option(
                ("--model",), "the model to ask; as PROVIDER/MODEL it means native", form="NAME"
            ),
            _EFFORT,
            Option(("--timeout",), "end the turn after so many seconds", form="SECONDS"),
            PROJECT,
        ),
        argument=("PROMPT", "what is to be done; - reads it from standard input"),
    ),
    Command(
        name="chat",
        summary="talk with an agent in this terminal",
        description="""\
Talk with an agent about this project. It works in a draft: the project stays as it
is until you publish. holdfast alone means the same, and so does holdfast "...".

What is said goes into the scrollback and stays there. If the terminal goes away,
the turn goes on; if anything behind the terminal dies, it is started again, and
what you have typed is kept. /help lists what can be done; Ctrl-C ends the turn,
twice leaves.""",
        examples=(
            ("holdfast chat", "begin; holdfast alone does the same"),
            ('holdfast "Mend the failing test"', "begin with a prompt"),
            ("holdfast --continue", "go on with the newest session about this project"),
            ("holdfast --resume h1x7abcd", "go on with this session"),
            ("holdfast --resume", "choose the session to go on with"),
        ),
        options=(
            Option(
                ("--runner",),
                "the agent: native, codex or rehearsal (otherwise: the last one)",
                form="NAME",
            ),
            _DEMO,
            Option(
                ("--resume",),
                "be at this session again; without an ID, choose among those about this project",
                form="ID",
                alone=CHOOSE,
            ),
            Option(("--continue",), "be at the newest session about this project again"),
            Option(("--plain",), "lines only: for screen readers and simple terminals"),
            Option(
                ("--notify",),
                "how to call you when you look elsewhere: bell, osc9, osc777, command, off",
                form="WAYS",
            ),
            Option(
                ("--consent",), "agree that the agent's model may see this project, from now on"
            ),
            Option(("--draft",), "work in this draft (otherwise: a new one)", form="ID"),
            Option(("--scenario",), "the script of the rehearsal", form="FILE"),
            Option(
                ("--model",), "the model to ask; as PROVIDER/MODEL it means native", form="NAME"
            ),
            _EFFORT,
            PROJECT,
        ),
        argument=("[PROMPT]", "what is to be done first"),
    ),
    Command(
        name="sessions",
        summary="the conversations with agents",
        description="""\
Every conversation with an agent is a session: all that was said and done is
written down before anybody is told, and can be read, watched and gone on with.""",
        examples=(
            ("holdfast sessions list", "which there are"),
            ("holdfast sessions show", "what was said in the newest"),
            ('holdfast ask --session ID "..."', "go on with one"),
        ),
    ),
    Command(
        name="sessions list",
        summary="all sessions",
        description="""\
List all sessions, the newest first: id, what it is doing, since when, and what it
began with. One at rest has no process; it is taken up when you go on with it.""",
        examples=(
            ("holdfast sessions list", "a page"),
            ("holdfast sessions list --json | jq -r .id", "only the ids"),
        ),
        options=(_JSON,),
    ),
    Command(
        name="sessions show",
        summary="what was said and done in a session",
        description="""\
Print what was said and done in a session, from its journal; nothing has to run.""",
        examples=(
            ("holdfast sessions show", "the newest"),
            ("holdfast sessions show ID --json", "every record, for a program"),
        ),
        options=(_JSON,),
        argument=("[ID]", "its id, or the end or beginning of it (otherwise: the newest)"),
    ),
    Command(
        name="sessions watch",
        summary="watch a session",
        description="""\
Print what was said and done in a session, and what is said and done from now on.
Whoever watches changes nothing. It ends when no turn runs in it and none waits.""",
        examples=(("holdfast sessions watch", "the newest"),),
        options=(_JSON,),
        argument=("[ID]", "its id, or the end or beginning of it (otherwise: the newest)"),
    ),
    Command(
        name="sessions end",
        summary="end a session",
        description="""\
End the turn that runs in a session, if one does, and the process that hosts it.
What was said and the draft are kept, and it can be gone on with. A draft in
which nothing was changed goes, and is made again when the session goes on.""",
        examples=(("holdfast sessions end ID", "let it rest"),),
        argument=("[ID]", "its id, or the end or beginning of it (otherwise: the newest)"),
    ),
    Command(
        name="acp",
        summary="be an agent for an editor",
        description="""\
Answer an editor by the Agent Client Protocol, over standard input and output. The
editor begins sessions, loads and resumes them; each works in a draft of its own, so
publish what you like: holdfast publish. It goes on whatever dies behind it.

Before a model may see the project the editor asks you, as it asks for permissions;
or agree beforehand, with holdfast consent give or --consent.""",
        examples=(
            ("holdfast acp --runner codex", "as the command of an agent in the editor's settings"),
        ),
        options=(
            Option(
                ("--runner",),
                "the agent: native, codex or rehearsal (otherwise: the last one)",
                form="NAME",
            ),
            Option(
                ("--consent",), "agree that the agent's model may see this project, from now on"
            ),
            Option(("--scenario",), "the script of the rehearsal", form="FILE"),
            Option(
                ("--model",), "the model to ask; as PROVIDER/MODEL it means native", form="NAME"
            ),
            _EFFORT,
        ),
    ),
    Command(
        name="demo",
        summary="see in a minute what this is for",
        description="""\
Let a scripted agent mend a small project in a directory of its own, and watch what
happens when the processes behind it are killed. It needs no key and no network,
touches nothing of yours, and leaves nothing behind.""",
        examples=(
            ("holdfast demo", "watch it"),
            ("holdfast demo --sample basket", "have its project, to try things on"),
        ),
        options=(Option(("--sample",), "only write its small project there, and end", form="DIR"),),
    ),
    Command(
        name="host",
        summary="host a session (started by others)",
        description="""\
Host a session: hold its agent, its journal and a socket for whoever leads or
watches it. It is started by the commands that need it, on the local server.""",
        examples=(("holdfast host ID", "as holdfast ask does"),),
        argument=("SESSION", "the id of the session"),
    ),
)


# What can be asked about taking conversations elsewhere.

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
