"""A small project with a mistake in it, for the scenario that mends it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

FILES: Final = {
    "basket.py": '''\
"""What is in a shopping basket, and what it costs."""


def total(prices: list[int]) -> int:
    """The sum of all prices."""
    result = 0
    for place in range(len(prices) - 1):
        result += prices[place]
    return result
''',
    "test_basket.py": '''\
"""What is paid is what was taken."""

import unittest

from basket import total


class TestBasket(unittest.TestCase):
    def test_an_empty_basket_costs_nothing(self) -> None:
        self.assertEqual(total([]), 0)

    def test_everything_is_paid_for(self) -> None:
        self.assertEqual(total([3, 4, 5]), 12)


if __name__ == "__main__":
    unittest.main()
''',
    "README.md": "# Basket\n\nRun the tests: `python3 -m unittest`\n",
    ".gitignore": "__pycache__/\n",
}


def is_sample(directory: Path) -> bool:
    """Whether a directory still holds the project, whatever its files in Python have become."""
    try:
        return (directory / "README.md").read_text() == FILES["README.md"]
    except (OSError, ValueError):
        return False


def write_sample(directory: Path) -> None:
    """Write the project into a directory, made if it is missing."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        (directory / name).write_text(text)
