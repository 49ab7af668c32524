"""Tokens that limit a client of the local exec-server to the place of one draft."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from holdfast.app.settings import Settings
from holdfast.app.wiring.local_server import ExecEndpoint, local_endpoint
from holdfast.exec import operating
from holdfast.exec.server.tokens import token_in
from holdfast.rpc.failures import TokenRefused
from holdfast.world import SystemDisk, replace_file

_TOKEN, _PLACE = "exec-token", "place"  # file names in the directory of a draft


async def draft_endpoint(server: ExecEndpoint, place: Path) -> ExecEndpoint:
    """The server with a token for this place only; starts the server and binds it if necessary.

    One token is stored with each draft and is valid as long as the draft exists.
    """
    token_file = place.parent / _TOKEN
    if token_file.exists():
        endpoint = replace(server, token=token_in(token_file))
        try:
            await (await endpoint.dial_or_start()).aclose()
        except TokenRefused:
            # The token is from a server whose state was removed since: bind the place again.
            pass
        else:
            return endpoint
    async with operating(server.dial_or_start) as operator:
        token = await operator.bind_place(str(place))
    replace_file(SystemDisk(), token_file, [f"{token}\n".encode()])
    return replace(server, token=token)


async def revoke_draft_token(settings: Settings, draft: Path) -> None:
    """Invalidate the token of a draft directory.

    Raises SocketRefused if no server runs; the token is useless then, because the draft is gone
    before the next server starts.
    """
    server = local_endpoint(settings)
    # Dial once outside `operating`, which would retry until its window has passed.
    await (await server.dial()).aclose()
    async with operating(server.dial) as operator:
        await operator.unbind_place(str(draft / _PLACE))
