"""Declarations of the commands for processes, the exec-server and sandboxes."""

from __future__ import annotations

from holdfast.cli.declarations import Command, Option

_SERVER = Option(
    ("--server",), "use this server instead of the local one (ws://, unix://)", form="URL"
)
_TOKEN = Option(("--token-file",), "the file with the token of that server", form="FILE")
_OF_EXEC = "its name in holdfast ps"
EXEC = (
    Command(
        name="exec",
        summary="run a command that outlives this terminal",
        description="""\
Run a command on an exec-server as if it ran here: complete output, with standard
output and standard error separate; your input up to its end; its exit status (128
plus the signal, if one ended it). The process survives a lost connection and the
death of the server; output that it wrote meanwhile follows.

Without --server the local server is used, and started if necessary. Only you can
connect to it. A process that you leave keeps running there, and is removed a day
after it was last attached; holdfast ps lists it.

Ctrl-C interrupts the command; a second one leaves it running. SIGTERM and
SIGQUIT do the same; SIGUSR1 and SIGUSR2 are forwarded.
With --tty all keys go to the command; Enter ~ . leaves it running.

The command gets your environment; on another server (--server) only the
variables PATH, HOME, USER, SHELL, LANG, LC_ALL, TERM and TZ.

There is no --json here, because both streams belong to the command. Programs use
holdfast ps --json and holdfast logs --json, or the package holdfast.exec.""",
        examples=(
            ("holdfast exec -- make -j8", "keep running if this terminal closes"),
            ("holdfast exec --tty -- vim notes.txt", "run a program that needs a terminal"),
            (
                "holdfast exec --detach --name web -- npm start",
                "run in the background under the name web",
            ),
            ("tar c . | holdfast exec -- sha256sum", "stream input to the command"),
            (
                "holdfast exec --server ws://127.0.0.1:4000 --token-file t -- uname -a",
                "run on another server",
            ),
        ),
        options=(
            Option(("-t", "--tty"), "allocate a terminal of the same size"),
            Option(("--cwd",), "its working directory (default: the current one)", form="DIR"),
            Option(("-d", "--detach"), "start it, print its name, and return"),
            Option(("--name",), "its name in ps, logs, attach and stop", form="NAME"),
            _SERVER,
            _TOKEN,
        ),
        rest=("CMD [ARG...]", "the command and its arguments; no shell interprets them"),
    ),
    Command(
        name="ps",
        summary="list running and recently ended processes",
        description="""\
List the processes of the local exec-server (or of --server), of all its clients:
name, state, age and command. The state shows if a process waits for its reader, or
for space on a full disk. This starts a server only if the last one left processes.""",
        examples=(
            ("holdfast ps", "print a table"),
            (
                "holdfast ps --json | jq -r 'select(.exitCode == null) | .id'",
                "print names of running processes",
            ),
        ),
        options=(
            Option(("--all",), "include processes of Holdfast itself, such as hosts"),
            Option(("--json",), "print one JSON object per process"),
            _SERVER,
            _TOKEN,
        ),
    ),
    Command(
        name="attach",
        summary="attach to a session or process",
        description="""\
Attach to a process that was left running: print its retained output, then continue as
with holdfast exec. A process that another client is attached to is refused; use
holdfast logs -f to read its output.

Or attach to a session with an agent: print the conversation and follow it. Every line
that you type is a prompt, or the answer to a question of the agent. Ctrl-C interrupts
the turn; Ctrl-D leaves, and a running turn continues.""",
        examples=(
            ("holdfast attach make-3f09a1", "attach to a process"),
            (
                "holdfast attach h1x7abcd",
                "attach to a session, by its name in holdfast sessions list",
            ),
        ),
        options=(_SERVER, _TOKEN),
        argument=("PROCESS|SESSION", f"{_OF_EXEC}, or the id of a session or the end of it"),
    ),
    Command(
        name="logs",
        summary="print the output of a process",
        description="""\
Print the retained output of a process, byte by byte, with standard output and standard
error separate. Attached clients are not affected. Of very long output only the last
64 MiB are retained; a note on standard error then tells what is missing.

With --json each piece of output is an object with its number, its stream and its bytes
in base64, in the order of both streams; the last object has type end.""",
        examples=(
            ("holdfast logs make-3f09a1 2>/dev/null | tail", "print the last lines"),
            ("holdfast logs -f make-3f09a1", "follow until it ends"),
            ("holdfast logs --json make-3f09a1 | jq -r .type", "as JSON"),
        ),
        options=(
            Option(("-f", "--follow"), "follow the output until the process ends"),
            Option(("--json",), "print one JSON object per piece of output"),
            _SERVER,
            _TOKEN,
        ),
        argument=("PROCESS", _OF_EXEC),
    ),
    Command(
        name="stop",
        summary="end a process, or all of them",
        description="""\
End a process and its descendants: with SIGTERM, and with SIGKILL after five seconds.
The command returns when the process has ended; it is not an error if it had ended
before.

With --all, end everything that runs for this HOLDFAST_HOME: processes, the exec-server,
its keeper, sandboxes, places and orphans. They are listed first, each with its state
directory, together with the running turns, and you are asked to confirm. With
--everywhere, end those of all homes of your user on this machine; with --state, those
of one state directory. Files are not touched. With --server, only the processes of
that server are ended, for all its clients.

With --orphans, end processes of this machine, of any state directory, whose keeper is
gone. They are listed first, and you are asked to confirm.""",
        examples=(
            ("holdfast stop make-3f09a1", "end this process"),
            ("holdfast stop --all", "end everything of this home, after confirmation"),
            ("holdfast stop --all --everywhere", "end everything of all your homes"),
            ("holdfast stop --all --yes", "do not ask for confirmation"),
            ("holdfast stop --orphans", "end processes whose keeper is gone"),
        ),
        options=(
            Option(("--all",), "end everything that runs for this home"),
            Option(("--everywhere",), "with --all: for all homes of your user"),
            Option(("--orphans",), "end processes whose keeper is gone"),
            Option(("--state",), "with --all: only for this state directory", form="DIR"),
            Option(("-y", "--yes"), "with --all or --orphans: do not ask for confirmation"),
            Option(("--json",), "print one JSON object per process, or one for all with --all"),
            _SERVER,
            _TOKEN,
        ),
        argument=("PROCESS", _OF_EXEC),
    ),
    Command(
        name="exec-server",
        summary="let other machines, or Codex, run processes here",
        description="""\
Serve processes, files and HTTP requests of this machine with the protocol of Codex's
exec-server. The first line of output is the address. A client with the token can do
everything that you can do: keep it secret.

With --state the processes outlive the server, and the next server with the same
directory takes them over. SIGTERM ends the server cleanly.

While it has no connections, sessions and processes, a small listener replaces the
server in the same process; the next client then waits half a second.""",
        examples=(
            ("holdfast exec-server", "listen on any free port, for this machine only"),
            (
                "holdfast exec-server --listen ws://0.0.0.0:4000 --state /var/lib/plane",
                "serve other machines, and survive restarts",
            ),
            ("CODEX_EXEC_SERVER_URL=ws://127.0.0.1:4000 codex", "let Codex use the server"),
        ),
        options=(
            Option(
                ("--listen",),
                "ws://HOST:PORT, unix://PATH or stdio (default: ws://127.0.0.1:0)",
                form="URL",
            ),
            Option(
                ("--token-file",),
                "the token file, created if missing (default: in the state directory)",
                form="FILE",
            ),
            Option(("--no-token",), "accept every client that can connect"),
            Option(("--state",), "store processes and their output in DIR", form="DIR"),
            Option(
                ("--detached-ttl",),
                "remove a detached session after SECONDS (default: 30)",
                form="SECONDS",
            ),
            Option(
                ("--retention",),
                "retain N MiB of the output of each process (default: 64)",
                form="N",
            ),
            Option(
                ("--name",),
                "also accept this Host header, for forwarded ports and proxies",
                form="HOST:PORT",
            ),
            Option(("--no-takeover",), "refuse a session that another connection uses"),
            Option(
                ("--idle-exit",),
                "exit after SECONDS without connections, sessions and processes (default: never)",
                form="SECONDS",
            ),
        ),
    ),
)


SANDBOX = (
    Command(
        name="sandbox",
        summary="run a command that can touch only what you name",
        description="""\
Run a command in a sandbox. It can read the system's programs and the current
directory, and can write only below directories given with --write; even there it
cannot change files that other programs would run later (.git/hooks, .envrc, .vscode
and the like, also if they do not exist yet). It can connect only to hosts given with
--net. It does not get variables that look like secrets, and cannot see other
processes.

With --net all connections go through a proxy, whose address is in HTTP_PROXY and
HTTPS_PROXY; a program that does not use the proxy cannot connect.

Terminal, signals and exit status are those of the command. Connections that the proxy
refused are listed at the end, on standard error. A file outside the sandbox is an
error to the command itself (Read-only file system, No such file or directory). With
--explain such files are listed at the end, too; each takes a tenth of a millisecond.

If only a weaker sandbox is possible, a note says so; if none is possible, the command
is not run, and the exit status is 126.""",
        examples=(
            ("holdfast sandbox -- make test", "read only"),
            ("holdfast sandbox --write . -- make", "allow changes in this directory"),
            (
                "holdfast sandbox --write . --net pypi.org --net files.pythonhosted.org "
                "-- pip install -t vendor rich",
                "and connections to these hosts",
            ),
            ("holdfast sandbox --write . -- bash", "work in the sandbox with a shell"),
            ("holdfast sandbox --explain -- make", "and list files that were refused"),
            ("holdfast sandbox probe", "try to break out of the sandbox"),
        ),
        options=(
            Option(
                ("--write",),
                "allow changes below DIR (may be repeated)",
                form="DIR",
                is_repeated=True,
            ),
            Option(
                ("--read",),
                "allow reading PATH (may be repeated)",
                form="PATH",
                is_repeated=True,
            ),
            Option(
                ("--net",),
                "allow connections to ports 80 and 443 of HOST: example.org, *.example.org, "
                "example.org:8443 (may be repeated)",
                form="HOST",
                is_repeated=True,
            ),
            Option(("--explain",), "list at the end the files that were refused"),
            Option(("--json",), "print a JSON report at the end, on standard error"),
        ),
        rest=("CMD [ARG...]", "the command and its arguments; no shell interprets them"),
    ),
    Command(
        name="sandbox probe",
        summary="try to break out of the sandbox",
        description="""\
Try to break out of the sandbox in 24 ways, and print which of them were contained.
Each is first tried without a sandbox, to verify that it works. Your files are not
touched. The exit status is 1 if any attempt succeeded.""",
        examples=(
            ("holdfast sandbox probe", "print a table"),
            (
                "holdfast sandbox probe --json | jq '.probes[] | select(.contained | not)'",
                "print escapes only",
            ),
        ),
        options=(Option(("--json",), "print one JSON object instead of a page"),),
    ),
)
