"""Declarations of the commands for sessions, forks, export and import."""

from __future__ import annotations

from holdfast.cli.declarations import CHOOSE, PROJECT, Command, Option

_JSON = Option(("--json",), "print one JSON object per line instead of text")
_EFFORT = Option(
    ("--effort",),
    "reasoning effort of a native model: none, minimal, low, medium, high, xhigh, max",
    form="WORD",
)
_DEMO = Option(("--demo",), "use the scripted agent, which needs no key (--runner rehearsal)")
SESSION = (
    Command(
        name="ask",
        summary="run one turn of an agent in a draft of this project",
        description="""\
Run one turn of an agent. It works in a draft: the project does not change until you
publish. The agent's messages go to standard output, its actions to standard error,
one line each.

The turn runs in a process of its own. If this terminal closes, the turn continues;
if that process, the agent or the exec-server dies, this command reports it, and the
conversation resumes from its journal.

With --json or without a terminal, permission requests of the agent are refused and
reported. With --in-place the changes are published when the turn has completed,
after a checkpoint; a turn that fails or is interrupted does not change the project.

native is Holdfast's own agent: start it with --model PROVIDER/MODEL, and a key of the
provider in the environment or entered by holdfast login. codex must be installed and
signed in. Both send what they read in the project to a model: you are asked once for
each project and provider, or agree with --consent. The last choice is remembered.
--demo starts a scripted agent (rehearsal) that needs no key and no network; without
--demo it only starts in the sample project of holdfast demo.""",
        examples=(
            ('holdfast ask "Fix the failing test"', "use the agent that you chose last"),
            (
                'holdfast ask --model openai/gpt-5.1 "Fix the failing test"',
                "use the native agent",
            ),
            ('holdfast ask --demo "Fix the failing test"', "use the scripted agent"),
            ('holdfast ask --runner codex "Fix the failing test"', "use Codex"),
            ('holdfast ask --session h1x7abcd "And now the docs"', "continue a session"),
            ("holdfast ask - < task.md", "read the prompt from a file"),
            (
                'holdfast ask --json "List the TODOs" | tail -1 | jq -r .text',
                "print the last message only",
            ),
        ),
        options=(
            Option(("--json",), "print one JSON object per line; the last one is the result"),
            Option(
                ("--runner",),
                "the agent: native, codex or rehearsal (default: the last one)",
                form="NAME",
            ),
            _DEMO,
            Option(("--session",), "continue this session", form="ID"),
            Option(("--in-place",), "publish the changes when the turn has completed"),
            Option(
                ("--consent",), "agree that the agent's provider may see this project, from now on"
            ),
            Option(("--draft",), "work in this draft (default: a new one)", form="ID"),
            Option(
                ("--scenario",),
                "the script of the rehearsal, or of a scripted native model",
                form="FILE",
            ),
            Option(("--model",), "the model; PROVIDER/MODEL selects the native agent", form="NAME"),
            _EFFORT,
            Option(("--timeout",), "interrupt the turn after SECONDS", form="SECONDS"),
            PROJECT,
        ),
        argument=("PROMPT", "the task; - reads it from standard input"),
    ),
    Command(
        name="chat",
        summary="talk with an agent in this terminal",
        description="""\
Talk with an agent about this project. It works in a draft: the project does not
change until you publish. holdfast alone does the same, and so does holdfast "...".

The conversation goes to the terminal's scrollback. If the terminal closes, the turn
continues; if a process behind the terminal dies, it is restarted, and your input is
kept. /help lists the commands; Ctrl-C interrupts the turn, a second one leaves.""",
        examples=(
            ("holdfast chat", "begin a session; holdfast alone does the same"),
            ('holdfast "Fix the failing test"', "begin with a prompt"),
            ("holdfast --continue", "resume the newest session of this project"),
            ("holdfast --resume h1x7abcd", "resume this session"),
            ("holdfast --resume", "choose the session to resume"),
        ),
        options=(
            Option(
                ("--runner",),
                "the agent: native, codex or rehearsal (default: the last one)",
                form="NAME",
            ),
            _DEMO,
            Option(
                ("--resume",),
                "resume this session; without an ID, choose one of this project",
                form="ID",
                alone=CHOOSE,
            ),
            Option(("--continue",), "resume the newest session of this project"),
            Option(("--plain",), "print plain lines: for screen readers and simple terminals"),
            Option(
                ("--notify",),
                "how to notify you without focus: bell, osc9, osc777, command, off",
                form="WAYS",
            ),
            Option(
                ("--consent",), "agree that the agent's provider may see this project, from now on"
            ),
            Option(("--draft",), "work in this draft (default: a new one)", form="ID"),
            Option(("--scenario",), "the script of the rehearsal", form="FILE"),
            Option(("--model",), "the model; PROVIDER/MODEL selects the native agent", form="NAME"),
            _EFFORT,
            PROJECT,
        ),
        argument=("[PROMPT]", "the first prompt"),
    ),
    Command(
        name="sessions",
        summary="list, read, follow and end sessions",
        description="""\
Every conversation with an agent is a session. Each record is written to its journal
before it is shown, and a session can be read, followed and resumed.""",
        examples=(
            ("holdfast sessions list", "list sessions"),
            ("holdfast sessions show", "print the newest conversation"),
            ('holdfast ask --session ID "..."', "continue a session"),
        ),
    ),
    Command(
        name="sessions list",
        summary="list sessions",
        description="""\
List all sessions, the newest first: id, state, age, and the first prompt. An idle
session has no process; a host is started when you continue it.""",
        examples=(
            ("holdfast sessions list", "print a table"),
            ("holdfast sessions list --json | jq -r .id", "print the ids only"),
        ),
        options=(_JSON,),
    ),
    Command(
        name="sessions show",
        summary="print the conversation of a session",
        description="""\
Print the messages and actions of a session from its journal; no process is needed.""",
        examples=(
            ("holdfast sessions show", "print the newest session"),
            ("holdfast sessions show ID --json", "print every record as JSON"),
        ),
        options=(_JSON,),
        argument=("[ID]", "its id, or the beginning or end of it (default: the newest)"),
    ),
    Command(
        name="sessions watch",
        summary="follow a session",
        description="""\
Print the messages and actions of a session and follow it. Watching does not affect
the session. The command ends when no turn runs or waits.""",
        examples=(("holdfast sessions watch", "follow the newest session"),),
        options=(_JSON,),
        argument=("[ID]", "its id, or the beginning or end of it (default: the newest)"),
    ),
    Command(
        name="sessions end",
        summary="end a session",
        description="""\
Interrupt the running turn of a session, if there is one, and end its host. The
conversation and the draft are kept, and the session can be resumed. A draft without
changes is deleted, and created again when the session is resumed.""",
        examples=(("holdfast sessions end ID", "end this session"),),
        argument=("[ID]", "its id, or the beginning or end of it (default: the newest)"),
    ),
    Command(
        name="acp",
        summary="serve an editor by the Agent Client Protocol",
        description="""\
Speak the Agent Client Protocol with an editor, over standard input and output. The
editor creates, loads and resumes sessions; each works in a draft of its own, which
you publish with holdfast publish. Sessions survive the death of any process behind
them.

Before a provider may see the project the editor asks you, as it asks for
permissions; to agree beforehand, use holdfast consent give or --consent.""",
        examples=(
            ("holdfast acp --runner codex", "as the agent command in the editor's settings"),
        ),
        options=(
            Option(
                ("--runner",),
                "the agent: native, codex or rehearsal (default: the last one)",
                form="NAME",
            ),
            Option(
                ("--consent",), "agree that the agent's provider may see this project, from now on"
            ),
            Option(("--scenario",), "the script of the rehearsal", form="FILE"),
            Option(("--model",), "the model; PROVIDER/MODEL selects the native agent", form="NAME"),
            _EFFORT,
        ),
    ),
    Command(
        name="demo",
        summary="watch a one-minute demonstration",
        description="""\
Let a scripted agent fix a small project in a temporary directory, and watch what
happens when the processes behind it are killed. It needs no key and no network, does
not touch your files, and removes everything afterwards.""",
        examples=(
            ("holdfast demo", "run the demonstration"),
            ("holdfast demo --sample basket", "write the sample project, to try things on"),
        ),
        options=(Option(("--sample",), "only write the sample project to DIR", form="DIR"),),
    ),
    Command(
        name="host",
        summary="run the host of a session (started by other commands)",
        description="""\
Run the host of a session: it owns the agent, the journal and a socket for clients.
Commands that need a host start it on the local exec-server.""",
        examples=(("holdfast host ID", "run the host of this session"),),
        argument=("SESSION", "the id of the session"),
    ),
)


TRANSFER = (
    Command(
        name="fork",
        summary="continue a session a second time, in its own draft",
        description="""\
Create a session with the same conversation as another one, in a draft of its own with
the same content. From then on the two are independent; Codex, which stores its
conversations itself, forks its thread. The session must not have a running turn.""",
        examples=(("holdfast fork h1x7abcd", "try a second approach"),),
        options=(Option(("--json",), "print one JSON object instead of text"),),
        argument=("[ID]", "its id, or the beginning or end of it (default: the newest)"),
    ),
    Command(
        name="sessions export",
        summary="print a session as JSON lines, without secrets",
        description="""\
Print a session as JSON lines: the first describes the session, each other is one
record. Keys and passwords are removed: those that this machine knows by their value,
all others by their form or their name. A text of more than 64 KiB is truncated and
marked. Read the file before you pass it on.""",
        examples=(
            (
                "holdfast sessions export ID --output talk.jsonl",
                "write a new file; an existing one is not overwritten",
            ),
            (
                "holdfast sessions export | jq -r .type",
                "types of the records of the newest session",
            ),
        ),
        options=(Option(("--output",), "write to FILE, which must not exist", form="FILE"),),
        argument=("[ID]", "its id, or the beginning or end of it (default: the newest)"),
    ),
    Command(
        name="sessions import",
        summary="import a conversation from Codex or Claude Code",
        description="""\
List the conversations of Codex or Claude Code about this project, or create a
session from one of them. Their files are only read; importing the same conversation
again returns the same session. A conversation with Codex continues in a draft, as
the same thread of Codex; one with Claude Code can be read and exported only, because
there is no runner for it yet.""",
        examples=(
            ("holdfast sessions import codex", "list conversations"),
            ("holdfast sessions import codex 0198c0de", "import this one"),
            ("holdfast chat --resume ID", "and resume it"),
        ),
        options=(Option(("--json",), "print one JSON object per line instead of text"), PROJECT),
        argument=("TOOL [ID]", "codex or claude, and the beginning of an id"),
        is_many=True,
    ),
)
