"""List the threads that Codex keeps."""

from __future__ import annotations

import sys
import time
from typing import cast

import anyio

from holdfast.app.settings import Settings
from holdfast.cli.appearance import look_for
from holdfast.cli.codex_order import directory
from holdfast.cli.commands import Request
from holdfast.cli.core.threads_page import Kept, kept, thread_line, threads_page
from holdfast.cli.model import Json, Outcome
from holdfast.cli.record_lines import json_line
from holdfast.codex import AppServer

_LIMIT = 10
_PAGE = 100  # threads in one answer


def threads(request: Request, settings: Settings) -> Outcome:
    """List the latest threads."""
    codex, cwd = request.value("--codex") or settings.codex, directory(request)
    limit = int(request.value("--limit") or _LIMIT)
    found, is_all = anyio.run(_listed, codex, cwd, limit)
    if request.is_json:
        return Outcome(answer="".join(json_line(thread_line(thread)) for thread in found))
    look = look_for(sys.stdout, request, settings)
    page = threads_page(found, look, now=time.time())
    return Outcome(answer=page, hint=_hint(found, is_all=is_all))


async def _listed(codex: str, cwd: str | None, limit: int) -> tuple[list[Kept], bool]:
    """The latest threads, and whether they are all."""
    found: list[Kept] = []
    cursor: Json = None
    async with AppServer.connect(command=(codex, "app-server")) as server:
        while len(found) < limit:
            wanted = {"limit": min(limit - len(found), _PAGE), "sortKey": "updated_at"}
            answer = await server.request("thread/list", {**wanted, "cwd": cwd, "cursor": cursor})
            threads, cursor = _read(cast("Json", answer))  # it was read from JSON
            found += threads
            if not (threads and cursor):
                return found, True
    return found, cursor is None


def _read(answer: Json) -> tuple[list[Kept], Json]:
    if not isinstance(answer, dict):
        return [], None
    match answer.get("data"):
        case [*data]:
            read = [kept(thread) for thread in data if isinstance(thread, dict)]
            return [thread for thread in read if thread is not None], answer.get("nextCursor")
        case _:
            return [], None


def _hint(found: list[Kept], *, is_all: bool) -> str:
    if not found:
        return 'No threads. Begin one: holdfast codex ask "..."'
    return "" if is_all else f"There are more: add --limit {10 * len(found)}"
