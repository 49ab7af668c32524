"""What a store holds, in which version, and how an older one is brought up to date."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from holdfast.world.failures import StoreForeign, StoreTooNew, StoreTooOld

Upgrade = TypeVar("Upgrade")


@dataclass(frozen=True, slots=True)
class Schema(Generic[Upgrade]):
    """The shape of one kind of store: every store carries its name and its version.

    Each upgrade leads from one version to the next, the last one to `version`. What an upgrade is,
    the store decides: a function of a record for a journal, of a connection for a database.
    """

    name: str
    version: int
    upgrades: tuple[Upgrade, ...] = ()

    def __post_init__(self) -> None:
        assert self.name
        assert 0 <= self.oldest <= self.version

    @property
    def oldest(self) -> int:
        """The oldest version that can still be brought up to date."""
        return self.version - len(self.upgrades)

    def check_name(self, found: str, *, path: str) -> None:
        """Refuse a store that holds something else."""
        if found != self.name:
            raise StoreForeign(path=path, expected=self.name, found=found)

    def upgrades_from(self, found: int, *, path: str) -> tuple[Upgrade, ...]:
        """The upgrades that lead from the version found to ours, in order; or refuse it."""
        if found > self.version:
            raise StoreTooNew(path=path, schema=self.name, found=found, newest=self.version)
        if found < self.oldest:
            raise StoreTooOld(path=path, schema=self.name, found=found, oldest=self.oldest)
        return self.upgrades[found - self.oldest :]
