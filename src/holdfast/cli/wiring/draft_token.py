"""Reach the local server as a guest who works in the place of a draft, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from holdfast.app.settings import Settings
from holdfast.cli.declarations import Request
from holdfast.cli.wiring.local_server import Server, server_of
from holdfast.exec import operating
from holdfast.exec.server.tokens import token_in
from holdfast.rpc.failures import TokenRefused
from holdfast.world import SystemDisk, replace_file

_TOKEN, _PLACE = "exec-token", "place"  # in the directory of a draft


async def guest_of(server: Server, place: Path) -> Server:
    """The server for whoever is to work in this place; started, and told of it, if need be.

    One token is kept with each draft: it is good as long as the draft, whoever uses it.
    """
    kept = place.parent / _TOKEN
    if kept.exists():
        guest = replace(server, token=token_in(kept))
        try:
            await (await guest.dial_or_start()).aclose()
        except TokenRefused:  # of another server, or one that forgot
            pass
        else:
            return guest
    async with operating(server.dial_or_start) as operator:
        token = await operator.bind_place(str(place))
    replace_file(SystemDisk(), kept, [f"{token}\n".encode()])
    return replace(server, token=token)


async def turn_out(settings: Settings, draft: Path) -> None:
    """Make the token of a draft worthless; raises if no server runs, and then it is so, too."""
    server = server_of(Request(), settings)
    await (await server.dial()).aclose()
    async with operating(server.dial) as operator:
        await operator.unbind_place(str(draft / _PLACE))
