"""Each agent is listed with the command that starts it."""

from __future__ import annotations

from holdfast.cli.render.agents import agents_page, start_command


def test_a_command_can_be_typed_as_it_is() -> None:
    assert start_command("codex", "", "chat") == "holdfast --runner codex"
    assert start_command("codex", "", "ask") == 'holdfast ask --runner codex "..."'
    assert start_command("native", "groq/MODEL", "chat") == "holdfast --model groq/MODEL"
    assert start_command("rehearsal", "", "chat") == "holdfast --demo"


def test_agents_are_numbered_for_a_prompt() -> None:
    assert agents_page(["a", "bcd"], ["one", "two\n"], is_numbered=True) == (
        "  1  a    one\n  2  bcd  two\\n\n"
    )
