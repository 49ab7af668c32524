"""Our own agent finds a mistake, mends it and shows that it is mended, with every format."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.agent.providers.registry import Format
from holdfast.agent.providers.scripted import ScriptedAnswer
from holdfast.runners import write_sample
from tests.cli.conversations import in_conversation, lines
from tests.cli.workbenches import Bench
from tests.journeys.native_stage import (
    KEY,
    Script,
    anchor,
    asked,
    holders,
    new_session,
    processes,
    serving,
    settle,
    told,
    use,
)
from tests.journeys.stage import linux_only
from tests.parts.provider_server import ProviderServer, Reply, Status
from tests.parts.provider_validators import validate

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300), linux_only]

TESTS = "python3 -m unittest 2>&1"
WRONG = "    for place in range(len(prices) - 1):"
WORSE = "    for place in range(1, len(prices)):"
RIGHT = "    for place in range(len(prices)):"
WAITING = "read -r word; env; set; echo heard $word"
FORMATS = [
    pytest.param(form, marks=() if form is Format.MESSAGES else pytest.mark.long) for form in Format
]
PRINTING = f"k={KEY[:20]}; k=${{k}}{KEY[20:]}; echo it is $k and also $(printf %s $k | base64 -w0)"


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        write_sample(made.project)
        yield made


def echo(kind: str) -> bytes:
    """A refusal that quotes what it was sent."""
    return f'{{"error": {{"type": "{kind}", "message": "your key was {KEY}"}}}}'.encode()


def mending(bench: Bench, seen: list[bool]) -> Script:
    """Look, mend it wrongly, see that, mend it well; the provider stumbles, and says the key."""
    keys = bench.settings.config / "keys.toml"

    def edit(server: ProviderServer, old: str, new: str) -> ScriptedAnswer:
        change = {"operation": "replace", "start": anchor(server, old), "text": new}
        return use("edit", path="basket.py", edits=[change])

    def script(server: ProviderServer) -> Iterator[ScriptedAnswer | Reply]:
        yield use("shell", command=TESTS, seconds=200)
        assert "FAILED (failures=1)" in told(server)
        yield Status(500, headers={"retry-after": "0"}, body=echo("server_error"))
        yield use("search", pattern="def total")
        yield use("read", path="basket.py")
        yield edit(server, WRONG, WORSE)
        yield use("shell", command=TESTS, seconds=200)
        assert "FAILED (failures=1)" in told(server)
        yield edit(server, WORSE, RIGHT)
        yield use("shell", command=TESTS, seconds=200)
        assert "OK" in told(server)
        yield use("shell", command=f"cat {keys}")
        yield use("shell", command=PRINTING)
        assert told(server).count("it is [redacted:known] and also [redacted:known]") == 1
        yield use("shell", command=WAITING, keeps_input=True, seconds=1)
        running = processes().values()
        seen.append(any(WAITING.encode() in command for command, _ in running))
        seen.append(any(KEY.encode() in command + environ for command, environ in running))
        yield use("shell", action="input", id="sh6", input="well\n", seconds=200)
        assert "heard well" in told(server)
        yield ScriptedAnswer(say="It is mended.")
        yield Status(400, body=echo("invalid_request_error"))

    return script


@pytest.mark.promise("A9", "W1", "W12", "C6", "C22")
@pytest.mark.parametrize("form", FORMATS)
async def test_a_mistake_is_mended_and_nobody_sees_the_key(bench: Bench, form: Format) -> None:
    seen: list[bool] = []
    async with serving(form, mending(bench, seen)) as server:
        settle(bench, form, there=server.url)
        done = await asked(bench, *new_session("Mend the basket."))
        validate(form, server.requests[-1].body)
        *records, result = lines(done.stdout)
        refused = await asked(bench, "--session", result["session"], "--consent", "And now?")
    published = bench.ran("publish", "--yes", "--draft", result["draft"])
    shown = bench.ran("sessions", "show", result["session"], "--json")
    exported = bench.ran("sessions", "export", result["session"])

    assert (result["status"], result["text"]) == ("completed", "It is mended."), (done, records)
    ended = [each["event"] for each in records if each.get("event", {}).get("type") == "tool_ended"]
    assert [each["is_ok"] for each in ended] == [
        False, True, True, True, False, True, True, False, True, True, True,
    ]  # fmt: skip
    assert published.returncode == 0, published
    assert RIGHT in bench.files()["basket.py"]
    assert seen == [True, False]
    kept, raw = bench.settings.config / "keys.toml", bench.settings.state / "exec/processes"
    found = [each for each in holders(KEY, bench.home) if not each.startswith(f"{raw}/")]
    assert found == [str(kept)]  # the plane keeps for a while what a process wrote, as it is
    error = lines(refused.stdout)[-1]["error"]
    assert (error["code"], KEY in str(error)) == ("MODEL_REQUEST_REFUSED", False)
    assert error["userMessage"].endswith("your key was ***")
    for each in (done, refused, published, shown, exported):
        assert KEY.encode() not in each.stdout + each.stderr
    assert KEY not in "".join(request.body.decode() for request in server.requests)
    assert {KEY in str(request.headers) for request in server.requests} == {True}
