"""Somebody who leads a session, gives one prompt, and watches until killed."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from holdfast.host.dialling import calling
from holdfast.host.model import Prompt


async def main(socket: Path, command: str) -> None:
    async with calling(socket) as call:
        if command:
            await call.command(Prompt(command, "go"))
        print("given", flush=True)
        async for _ in call.watch():
            pass


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), sys.argv[2])
