"""Decide when a sink that fails is left out, and when it is tried again."""

from __future__ import annotations

from dataclasses import dataclass

FAILURES_MAX = 3
REST = 60.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How a sink has behaved: failures in a row, and until when it is left out."""

    failures: int = 0
    until: float = 0.0

    def allows(self, now: float) -> bool:
        """Whether the sink is to be tried now."""
        return self.failures < FAILURES_MAX or now >= self.until

    def succeeded(self) -> Patience:
        """A record was taken: all is forgiven."""
        return self if self.failures == 0 else Patience()

    def failed(self, now: float) -> Patience:
        """A record was not taken, or took too long."""
        return Patience(failures=self.failures + 1, until=now + REST)

    @property
    def is_spent(self) -> bool:
        """Whether the sink is left out, but for a try after each rest."""
        return self.failures >= FAILURES_MAX
