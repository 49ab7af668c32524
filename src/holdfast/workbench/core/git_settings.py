"""Choose which settings of a repository git may see when Holdfast runs it.

Only settings that are data get through: the format of the repository, how files are shared, whether
refs have logs. Everything else in a git configuration can name a program.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_KEPT: Final = frozenset(
    {
        b"core.repositoryformatversion",
        b"core.sharedrepository",
        b"core.logallrefupdates",
        b"core.compression",
        b"core.loosecompression",
        b"extensions.objectformat",
        b"extensions.refstorage",
        b"extensions.preciousobjects",
    }
)
# Extensions that make no difference to objects, refs and a temporary index.
_IGNORED_EXTENSIONS: Final = frozenset(
    {
        b"extensions.noop",
        b"extensions.noop-v1",
        b"extensions.partialclone",
        b"extensions.relativeworktrees",
        b"extensions.submodulepathconfig",
        b"extensions.worktreeconfig",
    }
)
_OWN: Final = b"""\
[core]
\tbare = true
\thooksPath = /dev/null
\tfsmonitor = false
\tfsync = all
\tlogAllRefUpdates = true
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""


def settings_in(listing: bytes) -> dict[bytes, bytes]:
    """The last value of each key in the output of `git config --list -z`."""
    found: dict[bytes, bytes] = {}
    for item in listing.split(b"\0"):
        key, _, value = item.partition(b"\n")
        if key:
            found[key.lower()] = value
    return found


def unknown_extension(settings: dict[bytes, bytes]) -> str | None:
    """A repository extension whose meaning is not known here; None if there is none."""
    for key in sorted(settings):
        if key.startswith(b"extensions.") and key not in _KEPT | _IGNORED_EXTENSIONS:
            return key.partition(b".")[2].decode("utf-8", "backslashreplace")
    return None


def has_logs(settings: dict[bytes, bytes]) -> bool:
    """Whether updates of refs are logged; git does so unless it is told otherwise."""
    said = settings.get(b"core.logallrefupdates", b"true").lower()
    return said not in {b"false", b"no", b"off", b"0"}


def clean_config(settings: dict[bytes, bytes]) -> bytes:
    """A configuration with the data of this one and none of its programs."""
    return _OWN + b"".join(_lines(settings))


def _lines(settings: dict[bytes, bytes]) -> Iterator[bytes]:
    for key in sorted(_KEPT & settings.keys()):
        section, _, name = key.partition(b".")
        value = settings[key].replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
        yield b'[%s]\n\t%s = "%s"\n' % (section, name, value)
