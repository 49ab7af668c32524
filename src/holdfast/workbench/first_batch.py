"""A draft that is made for its first batch: it stays if the batch does.

What is to come is written down before the draft is made. So whoever opens the workbench after a
kill knows which draft nobody has asked for.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from holdfast.failures import Failure
from holdfast.workbench.holding import Held, below
from holdfast.workbench.model import Draft
from holdfast.workbench.settling import Deed, facts_of
from holdfast.workbench.site import is_there
from holdfast.world import disk_failure, remove_leftovers, replace_file

_RECORD: Final = "first-batch.json"


class _Begun(msgspec.Struct, frozen=True):
    key: str
    drafts: tuple[str, ...]


@contextmanager
def first_batch(held: Held, key: str) -> Generator[Draft]:
    """Make a draft for a batch; if the batch fails, it is removed again."""
    drafts = held.drafts
    known = (*(draft.id for draft in drafts.all()), *(each.draft for each in drafts.damaged()))
    begun = msgspec.json.encode(_Begun(key, known))
    remove_leftovers(held.bench.means.disk, _path(held))
    replace_file(held.bench.means.disk, _path(held), (begun,))
    try:
        yield held.drafts.make(news=held.bench.news)
    except Failure:
        forget_first_batch(held)
        raise
    with suppress(Failure):  # it is done: whoever opens the workbench next forgets it, too
        forget_first_batch(held)


def forget_first_batch(held: Held) -> None:
    """Remove the draft of a first batch that came to nothing; then nothing is to come any more.

    As long as something in it is to be finished or undone, nobody knows that yet.
    """
    if not is_there(_path(held)):
        return
    try:
        begun = msgspec.json.decode(_path(held).read_bytes(), type=_Begun)
    except OSError as error:
        raise disk_failure(error, path=str(_path(held))) from error
    except ValueError:  # it was cut short, so no draft was made yet
        begun = None
    if begun is not None and facts_of(held, Deed.BATCH, begun.key) is None:
        for draft in held.drafts.all():
            if draft.id not in begun.drafts and not draft.revisions:
                if held.is_interrupted(draft):
                    return
                held.drafts.remove(draft)
    held.bench.means.disk.unlink(_path(held))


def _path(held: Held) -> Path:
    return below(held.bench.directory, _RECORD)
