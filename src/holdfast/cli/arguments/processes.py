"""What can be asked of processes that outlive their terminal."""

from __future__ import annotations

from holdfast.cli.declarations import Command, Option

_SERVER = Option(("--server",), "that server instead of the local one (ws://, unix://)", form="URL")
_TOKEN = Option(("--token-file",), "the file with the token of that server", form="FILE")
_OF_EXEC = "its name, as holdfast ps has it"
EXEC = (
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

Ctrl-C interrupts the command; a second one leaves it running. SIGTERM and
SIGQUIT likewise; SIGUSR1 and SIGUSR2 are passed on.
With --tty all keys go to the command; Enter ~ . leaves it running.

The command gets your environment; on another server (--server) only the
variables PATH, HOME, USER, SHELL, LANG, LC_ALL, TERM and TZ.

There is no --json here: both streams belong to the command. A program reads
holdfast ps --json and holdfast logs --json, or embeds holdfast.exec.""",
        examples=(
            ("holdfast exec -- make -j8", "run it here, whatever happens to this terminal"),
            ("holdfast exec --tty -- vim notes.txt", "something that needs a terminal"),
            ("holdfast exec --detach --name web -- npm start", "in the background, as web"),
            ("tar c . | holdfast exec -- sha256sum", "input is streamed, and ends"),
            (
                "holdfast exec --server ws://127.0.0.1:4000 --token-file t -- uname -a",
                "on that server",
            ),
        ),
        options=(
            Option(("-t", "--tty"), "give it a terminal, of the size of ours"),
            Option(("--cwd",), "where it runs (otherwise: here)", form="DIR"),
            Option(("-d", "--detach"), "start it, print its name, and do not wait for it"),
            Option(("--name",), "its name in ps, logs, attach and stop", form="NAME"),
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
name, state, age and command. A process that waits until its reader (or, with a
full disk, you) makes room says so. A server is started for this only if the last
one has left processes.""",
        examples=(
            ("holdfast ps", "a page"),
            ("holdfast ps --json | jq -r 'select(.exitCode == null) | .id'", "what still runs"),
        ),
        options=(
            Option(("--all",), "also the processes of Holdfast itself, such as hosts of sessions"),
            Option(("--json",), "print one JSON object per process instead of a page"),
            _SERVER,
            _TOKEN,
        ),
    ),
    Command(
        name="attach",
        summary="be at a process or a session again",
        description="""\
Take a process up again that was left: what is kept of its output, from the
beginning, and then all as with holdfast exec. A process that somebody is
attached to is refused; holdfast logs -f shows it all the same.

Or be at a session with an agent: all that was said and done, then what is. Every
line that you type is a prompt, or the answer if the agent asks something. Ctrl-C
interrupts the turn; Ctrl-D leaves, and a turn that runs goes on.""",
        examples=(
            ("holdfast attach make-3f09a1", "as if you had never left"),
            (
                "holdfast attach h1x7abcd",
                "a session, by the name that holdfast sessions list shows",
            ),
        ),
        options=(_SERVER, _TOKEN),
        argument=("PROCESS|SESSION", f"{_OF_EXEC}, or the id of a session or its end"),
    ),
    Command(
        name="logs",
        summary="what a process has written",
        description="""\
Write what is kept of the output of a process: standard output and standard
error apart, byte by byte. Nobody who is attached notices. The beginning of very
long output (64 MiB) is no longer kept; then a note on standard error says so.

With --json each piece is an object: its number, its stream and its bytes in
base64, both streams in the order in which they came; then one of type end.""",
        examples=(
            ("holdfast logs make-3f09a1 2>/dev/null | tail", "its last lines"),
            ("holdfast logs -f make-3f09a1", "until it ends"),
            ("holdfast logs --json make-3f09a1 | jq -r .type", "for a program"),
        ),
        options=(
            Option(("-f", "--follow"), "go on until it ends"),
            Option(("--json",), "print one JSON object per piece of output"),
            _SERVER,
            _TOKEN,
        ),
        argument=("PROCESS", _OF_EXEC),
    ),
    Command(
        name="stop",
        summary="end a process, or all",
        description="""\
End a process with everything that it has started: kindly (SIGTERM), and by force
after five seconds. Returns when it has ended; one that has ended before is no failure.

With --all, end everything that runs for this HOLDFAST_HOME: processes, the server that
runs them, its keeper, sandboxes, places, and what has lost its keeper. What that is, is
shown first, each with the directory that it is kept in, together with the turns that
are running, and you are asked. With --everywhere, all homes of your user on this
machine; with --state, what is kept in that directory. No file is touched. With
--server, only the processes of that server are ended, whoever started them.

With --orphans, end the processes of this machine, whatever directory they belong
to, that run although the keeper which held them is gone. They are shown, and you
are asked, as well.""",
        examples=(
            ("holdfast stop make-3f09a1", "that one"),
            ("holdfast stop --all", "everything of this home, after a question"),
            ("holdfast stop --all --everywhere", "everything of all your homes"),
            ("holdfast stop --all --yes", "without a question"),
            ("holdfast stop --orphans", "what no server knows of any more"),
        ),
        options=(
            Option(("--all",), "all that runs for this home"),
            Option(("--everywhere",), "with --all: for all homes of your user"),
            Option(("--orphans",), "what has lost its keeper"),
            Option(("--state",), "with --all: only what is kept in this directory", form="DIR"),
            Option(("-y", "--yes"), "with --all or --orphans: do not ask"),
            Option(("--json",), "print one JSON object: of each process, or of all that was found"),
            _SERVER,
            _TOKEN,
        ),
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
            Option(
                ("--retention",),
                "keep so many MiB of the output of each process (otherwise: 64)",
                form="N",
            ),
            Option(
                ("--name",),
                "also answer to that name: for those behind a forwarded port or a proxy",
                form="HOST:PORT",
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


# What can be asked of sandboxes.

SANDBOX = (
    Command(
        name="sandbox",
        summary="run a command that can touch only what you name",
        description="""\
Run a command shut in. It sees the system's programs and the current directory,
and can change nothing but what is given with --write; there it cannot touch
what others would obey later (.git/hooks, .envrc, .vscode and the like, also if
they do not exist yet). It reaches no network but the hosts given with --net. It
gets no variable that looks like a secret, and cannot see other processes.

With --net a proxy stands between the command and the network, and its address is
in HTTP_PROXY and HTTPS_PROXY; what does not use it reaches nobody.

Terminal, signals and exit status are those of the command. What the proxy
stopped is said at the end, on standard error. A file that was out of reach is
an error to the command itself (Read-only file system, No such file or directory).
With --explain such files are named at the end, too, as far as it tried to open or
change them; it is slower then, by a tenth of a millisecond for each.

Where no whole sandbox can be made, a lesser one is announced; where none can be
made, nothing is run, and the exit status is 126.""",
        examples=(
            ("holdfast sandbox -- make test", "look, but change nothing"),
            ("holdfast sandbox --write . -- make", "work in this directory"),
            (
                "holdfast sandbox --write . --net pypi.org --net files.pythonhosted.org "
                "-- pip install -t vendor rich",
                "and reach these hosts",
            ),
            ("holdfast sandbox --write . -- bash", "look around in there"),
            ("holdfast sandbox --explain -- make", "and say what it lacked"),
            ("holdfast sandbox probe", "try to break out, in every way we know"),
        ),
        options=(
            Option(
                ("--write",),
                "let it change what is in this directory (may be repeated)",
                form="DIR",
                is_repeated=True,
            ),
            Option(
                ("--read",),
                "let it see this file or directory (may be repeated)",
                form="PATH",
                is_repeated=True,
            ),
            Option(
                ("--net",),
                "let it reach this host at ports 80 and 443: example.org, *.example.org, "
                "example.org:8443 (may be repeated)",
                form="HOST",
                is_repeated=True,
            ),
            Option(("--explain",), "name at the end the files that it was kept from"),
            Option(("--json",), "say at the end, on standard error, what happened as JSON"),
        ),
        rest=("CMD [ARG...]", "the command, as it is, without a shell"),
    ),
    Command(
        name="sandbox probe",
        summary="try to break out of the sandbox",
        description="""\
Try to break out of the sandbox as it is made here, in 24 ways, and say which of
them were contained. Each is first tried without a sandbox, so that it is known to
work. Nothing of yours is touched. Exits with 1 if anything got out.""",
        examples=(
            ("holdfast sandbox probe", "a page"),
            ("holdfast sandbox probe --json | jq '.probes[] | select(.contained | not)'", "leaks"),
        ),
        options=(Option(("--json",), "print one JSON object instead of a page"),),
    ),
)
