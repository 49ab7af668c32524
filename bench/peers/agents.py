"""Be an agent of others that takes step after step, in its own environment, until it is ended.

    python -m peers.agents NAME URL DIRECTORY STEPS

Every agent asks a model at URL, calls a tool that answers 1 KB, keeps what it keeps in DIRECTORY,
and has a conversation of STEPS steps behind it when it begins.
"""

from __future__ import annotations

import asyncio
import copy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULT = "result " * 146  # 1 KB


def mini_swe_agent(url: str, root: Path, steps: int) -> None:
    """The loop of its `run`, which saves everything after each step."""
    from minisweagent.agents.default import DefaultAgent
    from minisweagent.models.litellm_model import LitellmModel

    class Shell:
        """A shell that needs no process: that is not what is compared."""

        def execute(self, action: object) -> dict[str, object]:
            del action
            return {"output": RESULT, "returncode": 0, "exception_info": ""}

        def get_template_vars(self) -> dict[str, object]:
            return {}

        def serialize(self) -> dict[str, object]:
            return {}

    model = LitellmModel(
        model_name="openai/gpt-4o",
        model_kwargs={"api_base": url, "api_key": "k"},
        cost_tracking="ignore_errors",
    )
    kept = root / "trajectory.json"
    agent = DefaultAgent(
        model, Shell(), system_template="s", instance_template="go", cost_limit=0, output_path=kept
    )
    agent.add_messages(
        model.format_message(role="system", content="You are measured."),
        model.format_message(role="user", content="Go."),
    )
    agent.step()
    taken = agent.messages[-2:]
    for _ in range(steps):
        agent.messages.extend(copy.deepcopy(taken))
    while True:
        agent.step()
        agent.save(kept)


def pydantic_ai(url: str, root: Path, steps: int) -> None:
    """One run; it keeps nothing."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import (
        ModelRequest,
        ModelResponse,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.usage import UsageLimits

    del root
    model = OpenAIChatModel("gpt-4o", provider=OpenAIProvider(base_url=url, api_key="k"))
    agent = Agent(model, instructions="You are measured.")

    @agent.tool_plain
    def mark() -> str:
        """Mark a step."""
        return RESULT

    history: list[Any] = [ModelRequest(parts=[UserPromptPart("Go.")])] if steps else []
    for number in range(steps):
        call = ToolCallPart("mark", "{}", f"before_{number}")
        history.append(ModelResponse(parts=[call]))
        answer = ToolReturnPart("mark", RESULT, f"before_{number}")
        history.append(ModelRequest(parts=[answer]))
    limits = UsageLimits(request_limit=None)
    asyncio.run(agent.run("Go.", message_history=history or None, usage_limits=limits))


def langgraph(url: str, root: Path, steps: int) -> None:
    """Its ready-made agent, whose state is kept by SqliteSaver before the next step."""
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.prebuilt import create_react_agent

    @tool
    def mark() -> str:
        """Mark a step."""
        return RESULT

    model = ChatOpenAI(model="gpt-4o", base_url=url, api_key="k")
    history: list[Any] = [HumanMessage("Go.")]
    for number in range(steps):
        call = {"name": "mark", "args": {}, "id": f"before_{number}"}
        history.append(AIMessage("", tool_calls=[call]))
        history.append(ToolMessage(RESULT, tool_call_id=f"before_{number}"))
    with SqliteSaver.from_conn_string(str(root / "state.db")) as saver:
        graph = create_react_agent(model, [mark], checkpointer=saver)
        config: Any = {"configurable": {"thread_id": "1"}, "recursion_limit": 1_000_000}
        graph.invoke({"messages": [*history, HumanMessage("Go.")]}, config, durability="sync")


PEERS: dict[str, Callable[[str, Path, int], None]] = {
    "mini-swe-agent": mini_swe_agent,
    "pydantic-ai": pydantic_ai,
    "LangGraph": langgraph,
}

if __name__ == "__main__":
    PEERS[sys.argv[1]](sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
