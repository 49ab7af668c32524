"""What can be asked on the command line, as data: help, parser and reference are made of it."""

from __future__ import annotations

from typing import NamedTuple

from holdfast import __version__

VERSION_LINE = f"holdfast {__version__}\n"
GUIDE = """\
Holdfast runs coding agents so that nothing is lost: not your files, not the
agent's work, not the conversation, not the reason why something failed.

first steps:
  holdfast doctor            see what this machine can do, and what is missing
  holdfast doctor --json     the same, for a program
  holdfast codex ask "..."   let Codex take a turn, and watch it
  holdfast codex threads     the conversations that can be continued
  holdfast exec -- make      run a command that outlives this terminal

processes:
  holdfast ps                what runs, and what has ended lately
  holdfast logs -f NAME      what one has written, and what it writes
  holdfast attach NAME       be at it again, with input and signals
  holdfast stop NAME         end it
  holdfast exec-server       let other machines, or Codex, run processes here

environment:
  HOLDFAST_HOME    keep everything below this directory (an absolute path)
  HOLDFAST_CODEX   the program that is Codex (otherwise: codex, from the PATH)
  HOLDFAST_DEBUG   1: say more when something fails
  NO_COLOR         any value: no colours

exit statuses:
  0 done   1 failed   2 wrong usage   3 needs approval   4 not signed in
  5 budget spent   69 unavailable   74 not written   78 wrong setting
  126 no sandbox   130 interrupted   141 reader gone   143 terminated"""


class Option(NamedTuple):
    """A flag and what it does; it takes one of some values, a value of some form, or none."""

    flags: tuple[str, ...]
    meaning: str
    values: tuple[str, ...] = ()
    default: str | None = None
    form: str = ""


class Command(NamedTuple):
    """Something that can be done, and how to ask for it.

    A command whose name begins the names of others is their common page of help.
    """

    name: str
    summary: str
    description: str
    examples: tuple[tuple[str, str], ...]
    options: tuple[Option, ...] = ()
    argument: tuple[str, str] | None = None  # its form, and what it means
    rest: tuple[str, str] | None = None  # all words after --, likewise


class Request(NamedTuple):
    """What is asked this time; a `page`, if there is one, is the whole answer."""

    command: str = ""
    page: str | None = None
    is_json: bool = False
    is_verbose: bool = False
    colour: str = "auto"
    argument: str | None = None
    given: tuple[tuple[str, str], ...] = ()
    words: tuple[str, ...] = ()

    def has(self, flag: str) -> bool:
        """Whether a flag of the command was given."""
        return self.value(flag) is not None

    def value(self, flag: str) -> str | None:
        """What was given with a flag of the command, if it was."""
        return dict(self.given).get(flag)


class Misuse(NamedTuple):
    """Words that have no meaning, what is wrong with them, and where to read on."""

    problem: str
    read_on: str
    is_json: bool
    command: str = ""


TOP = (Option(("-V", "--version"), "show the version and exit"),)
COMMON = (
    Option(("-h", "--help"), "show this page and exit"),
    Option(("-v", "--verbose"), "say more when something fails"),
    Option(
        ("--color",),
        "when to use colours (auto: on a terminal)",
        values=("auto", "always", "never"),
        default="auto",
    ),
)
_SERVER = Option(("--server",), "that server instead of the local one (ws://, unix://)", form="URL")
_TOKEN = Option(("--token-file",), "the file with the token of that server", form="FILE")
_OF_EXEC = "its name, as holdfast ps has it"
_CODEX = Option(("--codex",), "the program that is Codex, instead of HOLDFAST_CODEX", form="PATH")
COMMANDS = (
    Command(
        name="doctor",
        summary="see what this machine can do, and what is missing",
        description="""\
Try everything that Holdfast relies on, by doing it: sync a file, start a
sandbox, mount an overlay, open a socket. Each finding comes with the command
that mends it. Nothing on the machine is changed.

Exits with 1 when a check failed, which means that a promise cannot be kept
here; a warning is not a failure.""",
        examples=(
            ("holdfast doctor", "look at this machine"),
            ("holdfast doctor --json | jq '.checks[] | select(.status != \"ok\")'", "what to mend"),
            ("HOLDFAST_HOME=/mnt/disk holdfast doctor", "would that disk do?"),
        ),
        options=(Option(("--json",), "print one JSON object instead of a page"),),
    ),
    Command(
        name="codex",
        summary="talk with Codex",
        description="""\
Talk with Codex, the coding agent of OpenAI. It has to be installed and signed
in by itself; Holdfast starts it for each command and ends it afterwards.""",
        examples=(
            ('holdfast codex ask "Why does the build fail?"', "let it take a turn, and watch it"),
            ("holdfast codex threads", "the conversations that can be continued"),
            ("holdfast codex ask --help", "all about one command"),
        ),
    ),
    Command(
        name="codex ask",
        summary="let Codex take a turn, and watch it",
        description="""\
Let Codex take one turn. What it says goes to standard output as it comes;
what it does (commands, file changes, retries) to standard error, a line each.

Codex asks before it does what its policy does not allow. You answer on the
terminal: y yes, a yes for this session, n no, c no and end the turn. Without a
terminal, or after ten minutes without an answer, it is a no.

Ctrl-C interrupts the turn, a second one leaves at once. The thread is kept by
Codex; the last line says how to continue it.

Text is shown so that it cannot steer the terminal, also in a pipe; --json has
it as it came, and always ends with a record of the type "result".""",
        examples=(
            ('holdfast codex ask "Fix the failing test"', "in this directory"),
            (
                'holdfast codex ask --resume 01a1... "And now the docs"',
                "continue that conversation",
            ),
            ("holdfast codex ask - < task.md", "the prompt is in a file"),
            (
                'holdfast codex ask --sandbox read-only "Explain this" > answer.md',
                "keep what it says, and watch what it does",
            ),
            (
                'holdfast codex ask --json "List the TODOs" | tail -1 | jq -r .text',
                "only the last message",
            ),
        ),
        options=(
            Option(("--json",), "print one JSON object per line instead of text"),
            Option(("--cwd",), "where Codex works (otherwise: here)", form="DIR"),
            Option(("--model",), "the model to ask (otherwise: as Codex is set up)", form="NAME"),
            Option(
                ("--sandbox",),
                "what commands may touch (otherwise: as Codex is set up)",
                values=("read-only", "workspace-write", "danger-full-access"),
            ),
            Option(
                ("--approval-policy",),
                "when Codex asks you (otherwise: as Codex is set up)",
                values=("untrusted", "on-request", "never"),
            ),
            Option(("--timeout",), "interrupt the turn after so long", form="SECONDS"),
            Option(("--resume",), "continue this thread; it keeps its settings", form="THREAD"),
            _CODEX,
        ),
        argument=("PROMPT", "what to ask; - or nothing: read it from standard input"),
    ),
    Command(
        name="codex threads",
        summary="the conversations that can be continued",
        description="""\
List the threads that Codex keeps, the latest first: how to name each, when it
was last used, and how it began.""",
        examples=(
            ("holdfast codex threads", "the latest ten"),
            ("holdfast codex threads --cwd . --limit 100", "those of this directory"),
            ("holdfast codex threads --json | jq -r .id", "their ids, for a program"),
        ),
        options=(
            Option(("--json",), "print one JSON object per thread instead of a page"),
            Option(("--limit",), "how many at most (otherwise: 10)", form="N"),
            Option(("--cwd",), "only those that worked in this directory", form="DIR"),
            _CODEX,
        ),
    ),
    Command(
        name="exec",
        summary="run a command that outlives this terminal",
        description="""\
Run a command on an exec-server, as if it ran here: its output to the last byte,
standard output and standard error apart; your input to its end; its exit
status (128 and the signal, if one ended it). A lost connection, or the death of
the server itself, is not noticed: the process goes on, and what it wrote
meanwhile follows.

Without --server the local server is used, and started if none runs. Only you
can reach it. What you leave runs on there, and is forgotten a day after it was
last attached; holdfast ps lists it.

Ctrl-C interrupts the command; a second one leaves it running. SIGTERM likewise.
With --tty all keys go to the command; Enter ~ . leaves it running.

The command gets your environment; on another server (--server) only the
variables PATH, HOME, USER, SHELL, LANG, LC_ALL, TERM and TZ.""",
        examples=(
            ("holdfast exec -- make -j8", "run it here, whatever happens to this terminal"),
            ("holdfast exec --tty -- vim notes.txt", "something that needs a terminal"),
            ("tar c . | holdfast exec -- sha256sum", "input is streamed, and ends"),
            (
                "holdfast exec --server ws://127.0.0.1:4000 --token-file t -- uname -a",
                "on that server",
            ),
        ),
        options=(
            Option(("-t", "--tty"), "give it a terminal, of the size of ours"),
            Option(("--cwd",), "where it runs (otherwise: here)", form="DIR"),
            _SERVER,
            _TOKEN,
        ),
        rest=("CMD [ARG...]", "the command, as it is, without a shell"),
    ),
    Command(
        name="ps",
        summary="what runs, and what has ended lately",
        description="""\
List the processes of the local exec-server (or --server), of all who use it:
name, state, age and command. No server is started for this.""",
        examples=(
            ("holdfast ps", "a page"),
            ("holdfast ps --json | jq -r 'select(.exitCode == null) | .id'", "what still runs"),
        ),
        options=(
            Option(("--json",), "print one JSON object per process instead of a page"),
            _SERVER,
            _TOKEN,
        ),
    ),
    Command(
        name="attach",
        summary="be at a process again, with input and signals",
        description="""\
Take a process up again that was left: what is kept of its output, from the
beginning, and then all as with holdfast exec. A process that somebody is
attached to is refused; holdfast logs -f shows it all the same.""",
        examples=(("holdfast attach make-3f09a1", "as if you had never left"),),
        options=(_SERVER, _TOKEN),
        argument=("PROCESS", _OF_EXEC),
    ),
    Command(
        name="logs",
        summary="what a process has written",
        description="""\
Write what is kept of the output of a process: standard output and standard
error apart, byte by byte. Nobody who is attached notices. The beginning of very
long output (64 MiB) is no longer kept; then a note on standard error says so.""",
        examples=(
            ("holdfast logs make-3f09a1 2>/dev/null | tail", "its last lines"),
            ("holdfast logs -f make-3f09a1", "until it ends"),
        ),
        options=(Option(("-f", "--follow"), "go on until it ends"), _SERVER, _TOKEN),
        argument=("PROCESS", _OF_EXEC),
    ),
    Command(
        name="stop",
        summary="end a process",
        description="""\
End a process and its group: kindly (SIGTERM), and by force after five seconds.
Returns when it has ended; one that has ended before is no failure.""",
        examples=(
            ("holdfast stop make-3f09a1", "that one"),
            ("holdfast stop --all", "every process of that server, whoever started it"),
        ),
        options=(Option(("--all",), "all that run"), _SERVER, _TOKEN),
        argument=("PROCESS", _OF_EXEC),
    ),
    Command(
        name="exec-server",
        summary="let other machines, or Codex, run processes here",
        description="""\
Serve processes, files and web requests of this machine in the protocol of
Codex's exec-server. The first line of output is the address. Whoever has the
token can do all that you can: keep it, and the address, to yourself.

With --state the processes outlive the server, however that ends, and the next
one with the same directory goes on with them. SIGTERM ends it in good order.

While it has no connections, sessions and processes it leaves the door to a small
porter, in the same process; the first who comes then waits half a second.""",
        examples=(
            ("holdfast exec-server", "any free port of this machine, for this machine"),
            (
                "holdfast exec-server --listen ws://0.0.0.0:4000 --state /var/lib/plane",
                "for others, and to be restarted",
            ),
            ("CODEX_EXEC_SERVER_URL=ws://127.0.0.1:4000 codex", "let Codex work there"),
        ),
        options=(
            Option(
                ("--listen",),
                "ws://HOST:PORT, unix://PATH or stdio (otherwise: ws://127.0.0.1:0)",
                form="URL",
            ),
            Option(
                ("--token-file",),
                "where the token is, or is put (otherwise: in the state directory)",
                form="FILE",
            ),
            Option(("--no-token",), "let in whoever reaches the address"),
            Option(("--state",), "keep processes and their output there", form="DIR"),
            Option(
                ("--detached-ttl",),
                "forget a session that nobody came back to after so long (otherwise: 30)",
                form="SECONDS",
            ),
            Option(("--no-takeover",), "refuse a session that another connection has"),
            Option(
                ("--idle-exit",),
                "end after so long without connections, sessions and processes (otherwise: never)",
                form="SECONDS",
            ),
        ),
    ),
)
