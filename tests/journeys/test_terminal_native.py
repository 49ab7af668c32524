"""A person and our own agent: another model, more room, and back to an earlier prompt."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from holdfast.app.wiring.agent_choice import AgentChoices, ChosenAgent
from tests.cli.conversations import in_conversation, lines, sessions
from tests.cli.running import COMMAND, environment
from tests.cli.workbenches import Bench
from tests.parts.pty_screen import PtyScreen, on_screen

pytestmark = pytest.mark.timeout(180)

READY = "idle · native"
ANSWERS: list[dict[str, object]] = [
    {"say": "Answer one."},
    {"calls": [{"tool": "sub_agent", "arguments": {"task": "Greet."}}]},
    {"say": "Answer two."},
    {"say": "Answer three."},
]


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


def test_one_goes_back_to_an_earlier_prompt_and_changes_the_model(bench: Bench) -> None:
    script = bench.home / "model.json"
    script.write_bytes(msgspec.json.encode({"answer": ANSWERS}))
    argv = [*COMMAND, "--runner", "native", "--scenario", str(script)]
    with on_screen(argv, cwd=bench.project, env=environment(bench.home)) as screen:
        screen.shows(READY)
        screen.type("Ask first\r")
        screen.sees("Answer one.")
        screen.shows(READY)
        screen.type("/model low high\r")
        screen.sees("Type PROVIDER/MODEL, one of none, minimal, low")
        screen.type("/model scripted/other high\r")
        screen.sees("scripted/other is asked to think with effort high.")
        screen.type("Ask second\r")
        screen.sees("Answer two.")
        screen.shows(READY)
        _go_back(screen)
        screen.type("\x15/compact\r")
        screen.sees("> /compact")
        screen.shows(READY)

    records = lines(bench.ran("sessions", "show", sessions(bench)[0]["id"], "--json").stdout)
    prompted = [each for each in records if each.get("type") == "prompted"]
    chosen = {"model": "scripted/other", "effort": "high"}
    hows = [{**each.get("how", {})} for each in prompted]
    assert [each["text"] for each in prompted] == [
        "Ask first", "Ask second", "Ask second again", ""
    ]  # fmt: skip
    assert hows[2].pop("head")
    assert hows == [{}, chosen, chosen, {**chosen, "compact": "yes"}]


def _go_back(screen: PtyScreen) -> None:
    """To before the second prompt, and ask something else."""
    screen.type("/agents\r")
    screen.sees("1 ✓ Sub-agent: Greet.")
    screen.type("/agents 1\r")
    screen.until(lambda: screen.scrolled.count("● Sub-agent: Greet.") == 2, "its card, again")
    screen.type("\x1b\x1b")
    screen.until(lambda: "> /branch" in screen.lines, "the list")
    screen.type("2\r")
    screen.until(lambda: "> Ask second" in screen.lines, "the second prompt")
    screen.type(" again\r")
    screen.sees("> Ask second again")
    screen.shows(READY)
    screen.type("/branch\r")
    screen.sees("3 Ask second again")
    assert "2 (another branch) Ask second" in screen.scrolled
    assert "1 Ask first" in screen.scrolled


@pytest.mark.promise("S1", "T6")
def test_a_missing_key_is_named_the_first_time_and_can_be_entered(bench: Bench) -> None:
    # A choice on the command line loads the failures of providers; a remembered one does not.
    AgentChoices(bench.settings.state).remember(ChosenAgent("native", "openai/some-model"))
    argv = [*COMMAND, "chat", "--consent"]
    with on_screen(argv, cwd=bench.project, env=environment(bench.home), size=(100, 30)) as screen:
        screen.shows(READY)
        screen.type("Hello\r")
        screen.sees("✗ No key for the provider")
        assert "Unknown failure" not in screen.scrolled
        screen.sees("→ Enter the key (Enter)")
        screen.shows(READY)
        screen.type("\r")
        screen.sees("Key of openai")
        screen.type("two words\r")
        screen.sees("MODEL_KEY_UNUSABLE")
        assert "two words" not in screen.scrolled
        screen.type("/login openai\r")
        screen.until(lambda: screen.scrolled.count("Key of openai") == 2, "the question")
        screen.type("sk-of-a-test\r")
        screen.sees("is kept in")
        assert "sk-of-a-test" not in screen.scrolled
    assert "sk-of-a-test" in (bench.settings.config / "keys.toml").read_text()
