"""Where the program begins.

Imports wait until they are needed: a hook or a prompt that asks for the version, or a person who
asks for help, must not pay for the whole program. Nor must a person who interrupts it at once be
shown where in its imports that was.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # to ask `typing` would be an import
if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.declarations import Misuse, Request


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments ask and return the exit status."""
    try:
        request = _read(sys.argv[1:] if arguments is None else arguments)
        return 0 if _is_answered(request) else _run(request)
    except KeyboardInterrupt:
        return 130


def _read(words: Sequence[str]) -> Request | Misuse:
    from holdfast.cli.declarations import ALONE, VERSION_LINE, Request

    if list(words) in (["--version"], ["-V"]):
        return Request(page=VERSION_LINE)
    if len(words) == 2 and words[0] == "host" and not words[1].startswith("-"):
        return Request(
            "host", argument=words[1]
        )  # skip the parser: a client waits for the host to start
    from holdfast.cli.output import is_terminal
    from holdfast.cli.parser import parse

    if words:
        return parse(words)
    if is_terminal(sys.stdin) and is_terminal(sys.stdout):
        return parse(["chat"])
    return parse(["ask", "-"]) if _has_piped_input() else Request("chat", given=((ALONE, "True"),))


def _has_piped_input() -> bool:
    """Whether something is piped or redirected in; /dev/null and a closed input are not."""
    import os
    from stat import S_ISFIFO, S_ISREG, S_ISSOCK

    try:
        status = os.fstat(0)
    except OSError:
        return False
    # Programs that use libuv, such as node, give their children a socket as standard input.
    is_stream = S_ISFIFO(status.st_mode) or S_ISSOCK(status.st_mode)
    return is_stream or (S_ISREG(status.st_mode) and status.st_size > 0)


def _is_answered(request: Request | Misuse) -> bool:
    from holdfast.cli.declarations import Misuse
    from holdfast.cli.output import write

    if isinstance(request, Misuse) or request.page is None:
        return False
    try:
        write(request.page)
    except OSError:
        return False  # the session will meet the same error, and says what it means
    return True


def _run(request: Request | Misuse) -> int:
    from holdfast.cli.invocation import run

    return run(request)


if __name__ == "__main__":
    sys.exit(main())
