"""What it costs through a server to start a process in a place, in a sandbox, and in both.

Each kind in turn, round after round, from the request to the news that it has ended.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

import anyio

sys.path.insert(0, str(Path(__file__).parent.parent))

from holdfast.confine import PlaceSpec, create, end
from holdfast.confine.failures import PlaceUnavailable
from holdfast.exec import operating
from holdfast.rpc import connect_websocket
from tests.exec.server.talking import Talk, served, talking
from tests.exec.server.test_launcher import workspace_write

ROUNDS = 40
PLACE_MOST, SANDBOX_MOST = 3.0, 25.0  # milliseconds, over a plain start and in all
ARGV = ["/bin/true"]


def plane_rows() -> Iterator[dict[str, object]]:
    """Starts on a server, to their ends."""
    with tempfile.TemporaryDirectory(prefix="bench-plane-", dir="/var/lib") as name:
        base = Path(name).resolve()
        for each in ("project", "state"):
            (base / each).mkdir(mode=0o700)
        spec = PlaceSpec(
            directory=str(base / "draft"),
            project=str(base / "project"),
            hidden=(str(base / "state"),),
        )
        try:
            create(spec).close()
        except PlaceUnavailable as unavailable:
            yield {"what": f"places: none here, {unavailable.reason}"}
            return
        try:
            taken = anyio.run(_measured, base)
        finally:
            end(spec.directory)
    plain = median(taken["plain"])
    for title, times in taken.items():
        row: dict[str, object] = {"what": f"through a server: a start, {title}"}
        row |= {"median ms": median(times), "least ms": min(times)}
        if title != "plain":
            row["over plain ms"] = median(times) - plain
        if title == "in a place":
            row |= {"aim ms over plain": PLACE_MOST, "met": median(times) - plain <= PLACE_MOST}
        if title == "in a sandbox":
            row |= {"aim ms": SANDBOX_MOST, "met": median(times) <= SANDBOX_MOST}
        yield row


async def _measured(base: Path) -> dict[str, list[float]]:
    state = base / "state"
    async with served(state, "--token-file", str(state / "token")) as server:
        token = (state / "token").read_text().strip()
        async with operating(lambda: connect_websocket(server.url, token=token)) as operator:
            bound = await operator.bind_place(str(base / "draft"))
        url = server.url
        async with talking(url, token=token) as outside, talking(url, token=bound) as inside:
            await outside.introduce()
            await inside.introduce()
            return await _rounds(outside, inside, base / "project")


async def _rounds(outside: Talk, inside: Talk, project: Path) -> dict[str, list[float]]:
    asked = workspace_write(project)
    kinds = {
        "plain": (outside, None),
        "in a place": (inside, None),
        "in a sandbox": (outside, asked),
        "in a sandbox in a place": (inside, asked),
    }
    taken: dict[str, list[float]] = {title: [] for title in kinds}
    for number in range(ROUNDS + 1):
        for title, (talk, sandbox) in kinds.items():
            began = perf_counter()
            await talk.run(
                f"{title} {number}", *ARGV, cwd=project.as_uri(), sandbox=sandbox, env=_ENV
            )
            if number:  # the first one finds out what there is
                taken[title].append(1000 * (perf_counter() - began))
    return taken


_ENV = {"PATH": os.defpath}
