"""Write what models cost and how much fits into them, from the `genai-prices` package.

    uv run --with genai-prices python scripts/refresh_prices.py FILE

Its data is maintained by many; we take the providers that we know, the prices of today, and
nothing that cannot be charged to a conversation.
"""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from genai_prices.data import providers
from genai_prices.types import StartDateConstraint, TieredPrices

NAMES = {
    "anthropic": "anthropic",
    "deepseek": "deepseek",
    "google": "google",
    "groq": "groq",
    "mistral": "mistral",
    "openai": "openai",
    "openrouter": "openrouter",
    "x-ai": "xai",
}
KINDS = {
    "equals": "equals",
    "starts_with": "starts",
    "ends_with": "ends",
    "contains": "contains",
    "regex": "matches",
}


def rules(match: Any) -> dict[str, list[str]]:  # Any: the package's own types
    """By what a model is recognised."""
    found: dict[str, list[str]] = {}
    for clause in getattr(match, "or_", None) or [match]:
        if together := getattr(clause, "and_", None):
            found.setdefault("matches", []).append("^" + "".join(map(ahead, together)))
        for theirs, ours in KINDS.items():
            if hasattr(clause, theirs):
                text = getattr(clause, theirs)
                found.setdefault(ours, []).append(getattr(text, "pattern", text))
    return found


def ahead(clause: Any) -> str:  # Any: as above
    """One of several conditions, as what a pattern looks ahead for."""
    if hasattr(clause, "starts_with"):
        return f"(?={re.escape(clause.starts_with)})"
    pattern = getattr(clause.regex, "pattern", clause.regex)
    return f"(?={pattern})" if pattern.startswith("^") else f"(?=.*(?:{pattern}))"


def today(prices: Any) -> Any:  # Any: as above
    """The prices that hold now; of those that depend on the hour, the highest."""
    if not isinstance(prices, list):
        return prices
    now = datetime.now(UTC).date()
    begun = [
        each
        for each in prices
        if isinstance(each.constraint, StartDateConstraint) and each.constraint.start_date <= now
    ]
    if begun:
        return max(begun, key=lambda each: each.constraint.start_date).prices
    others = [each for each in prices if not isinstance(each.constraint, StartDateConstraint)]
    return max((each.prices for each in others), key=lambda each: rate(each.input_mtok, 0) or 0)


def rate(price: Any, tokens: int) -> float | None:  # Any: as above
    """Dollars for a million tokens, where a request has so many."""
    if price is None:
        return None
    if not isinstance(price, TieredPrices):
        return float(price)
    above = [tier.price for tier in price.tiers if tokens > tier.start]
    return float(above[-1] if above else price.base)


def described(model: Any) -> dict[str, Any] | None:  # Any: as above
    """A model as we keep it, or nothing if it cannot be asked for text."""
    prices, recognised = today(model.prices), rules(model.match)
    if not recognised or prices.input_mtok is None or prices.output_mtok is None:
        return None
    parts = (prices.input_mtok, prices.cache_read_mtok, prices.output_mtok)
    starts = {tier.start for part in parts if isinstance(part, TieredPrices) for tier in part.tiers}
    rates = [[start, *(rate(part, start + 1) for part in parts)] for start in [0, *sorted(starts)]]
    return {**recognised, "window": model.context_window, "rates": rates}


def main(path: Path) -> None:
    """Write the file."""
    found = {
        NAMES[provider.id]: [kept for model in provider.models if (kept := described(model))]
        for provider in providers
        if provider.id in NAMES
    }
    lines = [
        f'"{name}": [\n' + ",\n".join(json.dumps(each) for each in models) + "\n]"
        for name, models in sorted(found.items())
    ]
    source = json.dumps(f"genai-prices {version('genai-prices')}, MIT, (c) Pydantic Services Inc.")
    text = f'{{\n"source": {source},\n"providers": {{\n' + ",\n".join(lines) + "\n}\n}\n"
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
