"""A host as people have it, but for settings of its agent: started with an order on its line."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from holdfast.app.sessions import KeptSession
from holdfast.app.settings import Settings, environment, load
from holdfast.cli.commands import Request
from holdfast.cli.draft_guest import guest_of
from holdfast.cli.exec_dial import server_of
from holdfast.cli.session_native import native_runner
from holdfast.exec import Client
from holdfast.host import DraftedWorkshop, HostOrder, run_host
from holdfast.runners import CodexRunner, Rehearsal, Runner, Stage
from holdfast.workbench import Workbench, entering
from holdfast.world import WriterThread


async def main(order: HostOrder, given: dict[str, Any]) -> None:
    settings = load()
    bench = Workbench.at(Path(order.project), settings.state)
    with WriterThread() as thread:
        workshop = DraftedWorkshop(bench, order.draft, thread, order.directory)
        await run_host(order, runner(order, given, bench, settings), workshop)


@asynccontextmanager
async def runner(
    order: HostOrder, given: dict[str, Any], bench: Workbench, settings: Settings
) -> AsyncGenerator[Runner]:
    server = server_of(Request(), settings)
    with entering(bench, order.draft) as entered:
        place, root = entered.view.place, str(entered.directory)
        if place is not None and place.holder is not None:
            server = await guest_of(server, Path(place.holder.directory))
    env = environment() | given.get("env", {})
    async with Client(server.dial_or_start) as client:
        stage = Stage(client, root, env, given["scratch"], order.session)
        if order.runner == "native":
            options = {"model": "there/model"}
            session = KeptSession(
                order.session, order.project, order.draft, "native", 0, options=options
            )
            yield native_runner(session, stage, bench, settings)
        elif order.runner == "rehearsal":
            yield Rehearsal(stage, Path(given["script"]))
        else:
            yield CodexRunner(stage, given["program"], approval_policy=given["policy"])


if __name__ == "__main__":
    read = json.loads(Path(sys.argv[1]).read_text())
    paths = {name: Path(read["order"][name]) for name in ("directory", "socket")}
    anyio.run(main, HostOrder(**(read["order"] | paths)), read["given"])
