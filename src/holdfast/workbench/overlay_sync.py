"""Keep the overlay of a draft right while its project changes beneath it.

Theory of operation. The kernel looks a name up in both layers once and keeps what it found, as
long as anything uses it. Changes of the lower layer under a mount are undefined in its manual; with
the options that places are mounted with (no `redirect_dir`, `metacopy`, `index`) they come to this:

1. A directory that was made in the draft has no lower directory, so what is removed in it leaves no
   whiteout. Once the project has that directory, too (it was published, or the person made it), a
   later mount merges the two, and what was removed is back. Therefore such a directory is detached,
   that is marked opaque in the upper layer, before a publication makes it in the project, and when
   it is found there. From then on the draft has a copy of it: what the person changes in it is
   written into the draft (`standing`). A directory that the project has lost while the draft keeps
   its own is such a directory, too, from then on: the base still has it, so when the project gets
   it back there is no difference that would tell.
2. A directory of the project that was removed and made again is seen as the removed one, which is
   empty. Mounting the overlay again drops all names that nothing uses. This is done when contents
   changed, and when any directory became another one (`layout`), as switching branches there and
   back does.
3. What a process inside uses (its working directory, an open file) is not dropped. Where that is
   a file, the project's entry is written into the draft, unless the upper layer decides about that
   path. A directory that was removed from the project and is used inside is as dead there as it is
   on any file system: it cannot be listed, which is told as such (`listing`), and it is dropped
   once the process ends, because the overlay is mounted again at every look until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.nouns import RelativePath
from holdfast.workbench.core.publication import Purpose
from holdfast.workbench.core.selection import known_entry
from holdfast.workbench.holding import PUBLISHED, Held
from holdfast.workbench.looking import look
from holdfast.workbench.model import Change, Checkpoint, Draft, Entry, Sort
from holdfast.workbench.transaction import carry_out
from holdfast.workbench.views import View


def made_in(changes: Iterable[Change]) -> Iterator[RelativePath]:
    """The directories that come to be by these changes."""
    for change in changes:
        was_directory = change.before is not None and change.before.is_directory
        if change.after is not None and change.after.is_directory and not was_directory:
            yield change.path


def gone_in(changes: Iterable[Change]) -> Iterator[RelativePath]:
    """The directories that are none any more after these changes."""
    return made_in(Change(each.path, each.after, each.before) for each in changes)


def follow_project(
    held: Held, view: View, draft: Draft, moved: tuple[Change, ...], theirs: Checkpoint
) -> None:
    """Let everything inside of a draft see the project as it is, where the draft wrote nothing.

    `moved` is how the project differs from the base of the draft. For a copy nothing is done.
    """
    layer = view.layer()
    if layer is None:
        return
    layout = held.store.layout(PUBLISHED)
    is_renewed = not view.is_seen(layout)
    if not moved and not is_renewed:
        return
    view.detach(made_in(moved))
    view.refresh()
    view.detach(gone_in(moved))
    _repair(held, view, draft, theirs, view.stale(change.path for change in moved))
    if not view.processes and not view.has_dead:
        view.note_seen(layout)


def _repair(
    held: Held, view: View, draft: Draft, theirs: Checkpoint, stale: Iterable[RelativePath]
) -> None:
    """Write the project's entries to paths at which the kernel shows others.

    If something writes there at this moment, it is left to the next time.
    """
    layer = view.layer()
    assert layer is not None, "only an overlay can be stale"
    changes: list[Change] = []
    for path in sorted(path for path in stale if not layer.decides(path)):
        want, have = known_entry(held.store.node(theirs, path)), look(view.root, path)
        if want != have and not _is_special(want) and not _is_special(have):
            changes.append(Change(path, have, want))
    if changes:
        carry_out(
            held.draft_site(draft, view),
            held.store,
            changes,
            purpose=Purpose(held.ids.make("tx")),
            tell=lambda _: None,
            news=held.bench.news,
        )


def _is_special(entry: Entry | None) -> bool:
    return entry is not None and entry.sort is Sort.SPECIAL
