"""What can be asked of sandboxes."""

from __future__ import annotations

from holdfast.cli.commands import Command, Option

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
