"""Load the list of prices that comes with the program; `make prices` makes it anew."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from holdfast.agent.core.prices import Prices, read_prices


@cache
def load_prices() -> Prices:
    """The list, read once."""
    return read_prices(files("holdfast.agent").joinpath("prices.json").read_bytes())
