"""Places that sessions run in: the machine, or the place that their token is bound to."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import anyio
import msgspec

from holdfast.confine import Place, clean, clean_all, find, remember_layers
from holdfast.confine.failures import PlaceLost, PlaceUncovered
from holdfast.exec.failures import PlaceExposed
from holdfast.exec.server.worker_threads import WorkerThreads
from holdfast.rpc import token_digest
from holdfast.world import Disk, replace_file
from holdfast.world.failures import StoreTooNew

PLAIN = "plain"

SANDBOXES = "sandboxes"
"""Where in its state directory a server keeps track of sandboxes, each place by itself."""

_BINDINGS = "bindings"
_VERSION = 1
_TOKEN_BYTES = 32


class _Bindings(msgspec.Struct, frozen=True):
    places: dict[str, str]  # of each token the digest, and the place that it is bound to
    version: int = _VERSION


class Bindings:
    """Tokens and the places that they are bound to; only digests of tokens are stored.

    `guests` is always current for the listener. One change at a time.
    """

    def __init__(self, state: Path, disk: Disk) -> None:
        self._path, self._disk = state / _BINDINGS, disk
        self.guests: dict[bytes, str] = dict(self._read())

    def bind(self, directory: str) -> str:
        """Return a new token for a place, valid until `unbind`."""
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._keep(self.guests | {token_digest(token): directory})
        return token

    def unbind(self, directory: str) -> bool:
        """Revoke all tokens of a place; returns whether there were any."""
        left = {key: place for key, place in self.guests.items() if place != directory}
        is_changed = left != self.guests
        if is_changed:
            self._keep(left)
        return is_changed

    def _keep(self, guests: dict[bytes, str]) -> None:
        record = _Bindings({key.hex(): place for key, place in guests.items()})
        replace_file(self._disk, self._path, [msgspec.json.encode(record)])
        # Additions first: a client that is connecting with the new token must be accepted.
        self.guests.update(guests)
        for key in self.guests.keys() - guests.keys():
            del self.guests[key]

    def _read(self) -> Iterator[tuple[bytes, str]]:
        try:
            record = msgspec.json.decode(self._path.read_bytes(), type=_Bindings)
        except (FileNotFoundError, ValueError):  # it may not even be text
            return
        if record.version > _VERSION:
            where, found = str(self._path), record.version
            raise StoreTooNew(path=where, schema="exec-server", found=found, newest=_VERSION)
        for key, place in record.places.items():
            # A token that was spoiled leads nowhere.
            with suppress(ValueError):
                yield bytes.fromhex(key), place


@dataclass(eq=False, slots=True)
class _Visit:
    """An open place, and its number of users."""

    place: Place
    count: int = 0


class BoundPlace:
    """A place that sessions are bound to, which is found again when a new holder mounts it.

    Descriptors of a lost place are closed as soon as they are unused: an open one keeps its mounts
    alive.
    """

    def __init__(self, name: str, state: Path, workers: WorkerThreads) -> None:
        self.name = name
        self.state = state / SANDBOXES / sha256(os.fsencode(name)).hexdigest()[:16]
        self._server_state, self._workers = state, workers
        self._visit: _Visit | None = None

    @asynccontextmanager
    async def reached(self) -> AsyncGenerator[Place]:
        """Yield the place; raises `PlaceLost` if it has no holder.

        Raises `PlaceUncovered` if changes would go to the project itself.
        """
        visit = self._visit
        if visit is None or visit.place.is_lost:
            self.tick()
            found = await self._newly_found()
            # A concurrent caller was faster.
            if self._visit is not None:
                found.close()
            else:
                self._visit = _Visit(found)
            visit = self._visit
        if not visit.place.is_covering:
            raise PlaceUncovered(directory=self.name)
        visit.count += 1
        try:
            yield visit.place
        finally:
            visit.count -= 1
            self._let_go(visit)

    def tick(self) -> bool:
        """Release a lost place; returns whether it was lost just now."""
        visit = self._visit
        if visit is None or not visit.place.is_lost:
            return False
        self._visit = None
        self._let_go(visit)
        return True

    def close(self) -> None:
        """Release the place, which lives on."""
        if (visit := self._visit) is not None:
            self._visit = None
            self._let_go(visit)

    def clean_up(self) -> None:
        """Remove leftovers of sandboxes that were killed with their server."""
        clean(self.state)

    def _let_go(self, visit: _Visit) -> None:
        if visit is not self._visit and not visit.count:
            visit.place.close()

    async def _newly_found(self) -> Place:
        """Find the place; shielded from cancellation, because the result must be closed."""
        with anyio.CancelScope(shield=True):
            return await self._workers.do(self._found)
        raise AssertionError("nothing cancels the scope")

    def _found(self) -> Place:
        place = Place.plain() if self.name == PLAIN else find(self.name)
        if place is None:
            raise PlaceLost(directory=self.name)
        with ExitStack() as undone:
            undone.callback(place.close)
            refuse_exposed(place, self._server_state)
            remember_layers(self.state, place.holder)
            self.clean_up()
            undone.pop_all()
        return place


class BoundPlaces:
    """Every place that sessions are bound to."""

    def __init__(self, state: Path, workers: WorkerThreads) -> None:
        self._state = state
        self._make: Callable[[str], BoundPlace] = lambda name: BoundPlace(name, state, workers)
        self._sites: dict[str, BoundPlace] = {}

    def __iter__(self) -> Iterator[BoundPlace]:
        return iter(list(self._sites.values()))

    def of(self, name: str) -> BoundPlace:
        """Return a place by name, open or not."""
        if name not in self._sites:
            self._sites[name] = self._make(name)
        return self._sites[name]

    def clean_up(self) -> None:
        """Remove leftovers of sandboxes of earlier servers, in places and on the machine."""
        clean_all(self._state / SANDBOXES)

    def close(self) -> None:
        for site in self:
            site.close()


@contextmanager
def root_of(place: Place) -> Generator[int | None]:
    """Yield a descriptor of the root of a place; None for the machine itself."""
    if place.holder is None:
        yield None
        return
    root = place.files.open(b"/", os.O_PATH | os.O_DIRECTORY)
    try:
        yield root
    finally:
        os.close(root)


def refuse_exposed(place: Place, state: Path) -> None:
    """Raise `PlaceExposed` if the server's state is visible in a place."""
    if place.holder is None:
        return
    # It is not to be seen, as it should be.
    with suppress(OSError):
        place.files.names(os.fsencode(state.resolve() / "processes"))
        raise PlaceExposed(directory=place.holder.directory, state=str(state))
