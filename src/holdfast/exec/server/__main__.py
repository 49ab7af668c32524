"""Run the exec-server as `python -m holdfast.exec.server`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

from holdfast.exec.server.ownership import SessionPolicy
from holdfast.exec.server.server import STDIO, ServerSettings, serve
from holdfast.exec.server.tokens import token_in
from holdfast.exec.storage.retention_loop import BYTES_MAX
from holdfast.failures import Failure


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to end; the exit status says what kind of failure ended it, if one did."""
    parsed = _parser().parse_args(arguments)
    try:
        settings = _settings(parsed, may_rest=arguments is None)
        rest = anyio.run(serve, settings, _announce, backend_options={"use_uvloop": True})
        if rest is not None:
            rest.begin(settings.environment)
    except Failure as failure:
        print(failure.user_message, file=sys.stderr)  # noqa: T201  # this is a command
        return failure.kind.exit_status
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="exec-server", description=__doc__)
    parser.add_argument("--listen", default="ws://127.0.0.1:0")
    token = parser.add_mutually_exclusive_group()
    token.add_argument("--token-file", type=Path)
    token.add_argument("--no-token", action="store_true")
    parser.add_argument("--name", action="append", default=[])
    parser.add_argument("--state", type=Path)
    parser.add_argument("--detached-ttl", type=float, default=SessionPolicy().detached_ttl)
    parser.add_argument("--no-takeover", action="store_true")
    parser.add_argument("--retention-bytes", type=int, default=BYTES_MAX)
    parser.add_argument("--end-processes", action="store_true")
    parser.add_argument("--idle-exit", type=float)
    return parser


def _settings(parsed: argparse.Namespace, *, may_rest: bool) -> ServerSettings:
    token = None
    if parsed.listen != STDIO and not parsed.no_token:
        if parsed.token_file is None and parsed.state is None:
            _parser().error("give --token-file, --state or --no-token")
        token = token_in(parsed.token_file or parsed.state / "token")
    return ServerSettings(
        listen=parsed.listen,
        token=token,
        names=tuple(parsed.name),
        state=parsed.state,
        policy=SessionPolicy(detached_ttl=parsed.detached_ttl, takeover=not parsed.no_takeover),
        retention_bytes_max=parsed.retention_bytes,
        end_processes=parsed.end_processes,
        idle_exit=parsed.idle_exit,
        may_rest=may_rest,
        environment=dict(os.environ),  # noqa: TID251  # the command itself, until it has settings
    )


def _announce(url: str) -> None:
    print(url, flush=True)  # noqa: T201  # the first line of output is the address


if __name__ == "__main__":
    sys.exit(main())
