"""The agent that the person chose last, and where the sample projects are.

Both lie in `agent.json` in the state directory. A file that cannot be read counts as empty: the
person is asked again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from holdfast.runners import is_sample
from holdfast.world import SystemDisk, make_private, replace_file

_FILE: Final = "agent.json"
_SAMPLES_MAX: Final = 100


class ChosenAgent(msgspec.Struct, frozen=True):
    """A runner and, for `native`, its PROVIDER/MODEL."""

    runner: str
    model: str = ""


class _Kept(msgspec.Struct, frozen=True):
    chosen: ChosenAgent | None = None
    samples: tuple[str, ...] = ()


class AgentChoices:
    """Reads and writes `agent.json` below a state directory."""

    def __init__(self, state: Path) -> None:
        self._state = state

    def last(self) -> ChosenAgent | None:
        """The agent that was chosen last, if one ever was."""
        return self._read().chosen

    def remember(self, chosen: ChosenAgent) -> bool:
        """Keep a choice durably; return whether it differs from the last one."""
        kept = self._read()
        if kept.chosen == chosen:
            return False
        self._write(msgspec.structs.replace(kept, chosen=chosen))
        return True

    def add_sample(self, project: Path) -> None:
        """Remember that `holdfast demo` wrote a sample project into this directory."""
        kept, added = self._read(), str(project.resolve())
        samples = (*(each for each in kept.samples if each != added), added)[-_SAMPLES_MAX:]
        self._write(msgspec.structs.replace(kept, samples=samples))

    def sample_at(self, directory: Path) -> Path | None:
        """The sample project that a directory is, or lies in.

        A project that took its place since, under the same name, is not a sample.
        """
        there = directory.resolve()
        samples = map(Path, self._read().samples)
        return next(
            (each for each in samples if there.is_relative_to(each) and is_sample(each)), None
        )

    def _read(self) -> _Kept:
        try:
            return msgspec.json.decode((self._state / _FILE).read_bytes(), type=_Kept)
        except (OSError, ValueError):
            return _Kept()

    def _write(self, kept: _Kept) -> None:
        make_private(self._state)
        replace_file(SystemDisk(), self._state / _FILE, [msgspec.json.encode(kept)])
