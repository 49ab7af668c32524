"""One line that says where a session stands, as far as there is room for it."""

from __future__ import annotations

from holdfast.runners.model import Used


def meter(used: Used | None) -> list[str]:
    """How full the model is and what it has cost, as far as anybody knows."""
    if used is None:
        return []
    found: list[str] = []
    if used.window_tokens and used.context_tokens:
        found.append(f"{min(100, round(100 * used.context_tokens / used.window_tokens))}% context")
    if used.cost_usd is not None:
        found.append(f"${used.cost_usd:.2f}")
    return found


def cost_lines(used: Used | None) -> list[str]:
    """What the conversation has taken so far, in full."""
    if used is None:
        return ["Nothing was asked of a model yet, as far as the agent says."]
    cost = "unknown" if used.cost_usd is None else f"${used.cost_usd:.4f}"
    room = "" if used.window_tokens is None else f" of {used.window_tokens:,}"
    return [
        f"model    {used.model or 'unknown'}",
        f"input    {used.input_tokens:,} tokens, {used.cached_tokens:,} of them cached",
        f"output   {used.output_tokens:,} tokens",
        f"context  {used.context_tokens:,}{room} tokens",
        f"cost     {cost}",
    ]


def fitted(parts: list[str], width: int, *, between: str = " · ") -> str:
    """As many parts as fit, the first ones first; the last, a hint, goes before the others."""
    line = ""
    for part in parts:
        longer = f"{line}{between}{part}" if line else part
        if len(longer) > width:
            break
        line = longer
    return line[:width]
