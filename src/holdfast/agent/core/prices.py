"""What models cost and how much fits into them, by a list that others maintain."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from holdfast.agent.model import Choice, Tokens

_MILLION = 1_000_000
_WRITTEN = 1.25  # times the price of input: what goes to a cache that lasts five minutes


class Rates(msgspec.Struct, frozen=True, array_like=True):
    """Dollars for a million tokens, where a request has more than so many."""

    above: int
    input: float
    cached: float | None
    output: float


class Priced(msgspec.Struct, frozen=True):
    """A model of the list: by what it is recognised, what fits into it and what it costs."""

    rates: tuple[Rates, ...]
    window: int | None = None
    equals: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    contains: tuple[str, ...] = ()
    matches: tuple[str, ...] = ()

    def is_called(self, name: str) -> bool:
        """Whether a model of this name is meant."""
        return (
            name in self.equals
            or name.startswith(self.starts)
            or name.endswith(self.ends)
            or any(part in name for part in self.contains)
            or any(re.search(pattern, name) for pattern in self.matches)
        )


class PriceList(msgspec.Struct, frozen=True):
    """All models, by provider; `source` says whom we have it from."""

    source: str
    providers: dict[str, tuple[Priced, ...]]


class Prices:
    """Answers for a list; of models that it does not know nothing is said."""

    def __init__(self, known: PriceList) -> None:
        self._known = known
        self._find = lru_cache(maxsize=64)(self._search)

    def window(self, choice: Choice) -> int | None:
        """How many tokens fit into a model."""
        found = self._find(choice.provider, choice.model)
        return found.window if found else None

    def price(self, choice: Choice, tokens: Tokens) -> float | None:
        """What so many tokens cost, in dollars."""
        found = self._find(choice.provider, choice.model)
        if found is None:
            return None
        rates = next(
            each for each in reversed(found.rates) if tokens.input > each.above or not each.above
        )
        cheaper = rates.input if rates.cached is None else rates.cached
        fresh = max(tokens.input - tokens.cached - tokens.written, 0) + tokens.written * _WRITTEN
        spent = fresh * rates.input + tokens.cached * cheaper + tokens.output * rates.output
        return spent / _MILLION

    def _search(self, provider: str, model: str) -> Priced | None:
        models = self._known.providers.get(provider, ())
        return next((each for each in models if each.is_called(model.lower())), None)


def read_prices(data: bytes) -> Prices:
    """Read the list."""
    return Prices(msgspec.json.decode(data, type=PriceList))
