"""Find the turns that are running under keepers, of this home and of others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from holdfast.app.sessions import PREFIX
from holdfast.cli.core.stop_page import Belonging, RunningTurn, Sort
from holdfast.failures import Failure
from holdfast.host import Session, fold, read_book
from holdfast.host.model import Prompted
from holdfast.world import command_of, system_processes

_HOST: Final = " host "  # how the command of a host goes on, before the id of its session


def running_turns(found: Sequence[Belonging]) -> list[RunningTurn]:
    """Every turn with a living host among what these keepers hold."""
    keepers = {each.pid: Path(each.kept) for each in found if each.sort is Sort.KEEPER}
    turns: list[RunningTurn] = []
    for process in system_processes() if keepers else ():
        if process.is_dead or process.parent not in keepers:
            continue
        _, is_host, session = command_of(process.pid).partition(_HOST)
        if is_host and session.startswith(f"{PREFIX}_"):
            # A keeper's directory is `exec` in the state directory, beside the sessions.
            sessions = keepers[process.parent].parent / "sessions"
            turns += _running(sessions / session.strip() / "journal.jsonl")
    return sorted(turns)


def _running(journal: Path) -> list[RunningTurn]:
    with suppress(Failure):  # a journal that cannot be read says nothing about its turns
        records = [record for _, record in read_book(journal)]
        state = fold(Session(), records)
        asked = (each for each in records if isinstance(each, Prompted) and each.turn == state.turn)
        if state.is_running:
            prompt = next((each.text for each in asked), "")
            return [RunningTurn(state.id, state.project, prompt)]
    return []
