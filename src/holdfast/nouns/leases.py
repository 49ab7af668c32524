"""Who may act on something that only one may act on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from holdfast.nouns.escapes import shown
from holdfast.nouns.failures import LeaseInvalid
from holdfast.nouns.numbered import is_pair, split


@dataclass(frozen=True, slots=True)
class Lease:
    """A holder's claim; of two claims on one thing the newer generation wins."""

    holder: str
    generation: int

    def __post_init__(self) -> None:
        assert is_pair(self.holder, self.generation), f"{self.holder!r} cannot hold a lease"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text form, `holder@generation`."""
        pair = split(text, "@")
        if pair is None:
            raise LeaseInvalid(lease=shown(text))
        return cls(*pair)

    def __str__(self) -> str:
        return f"{self.holder}@{self.generation}"

    def supersedes(self, other: Lease) -> bool:
        """Whether it takes over from `other`."""
        return self.generation > other.generation

    def refuses(self, presented: Lease) -> bool:
        """Whether one who knows this lease must turn away whoever presents the other.

        The same generation in two hands means that one of them was never granted it.
        """
        return presented != self and not presented.supersedes(self)
