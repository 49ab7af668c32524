"""What a command of the agent may touch, in the words that the process plane understands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_LESSER = """\
# The sandbox here
This machine can only shut commands in less well than it should. A command still changes nothing \
but the project and $TMPDIR, and reaches no network. But: {lacks}. In the project's root, and \
wherever else it says "Permission denied", it changes files that are there and makes no new ones: \
make those with the write tool, then it can. Run nothing that you have not looked at."""
_NONE = """\
# No sandbox here
This machine cannot shut commands in ({lacks}). So a command runs only with reach `open`, and only \
if the person allows that very command. Use the other tools as far as they go, ask for a command \
where nothing else will do, and say what you could not check."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """How well commands are shut in, and what that lacks or why it cannot be done."""

    strength: str = "full"  # or `reduced`, or `none`
    lacks: tuple[str, ...] = ()

    def for_model(self) -> str:
        """What a model has to know about it; nothing if all is well."""
        text = {"reduced": _LESSER, "none": _NONE}.get(self.strength, "")
        return text.format(lacks="; ".join(self.lacks))

    def for_person(self) -> str:
        """What the person is told of it; nothing if all is well."""
        lacks = "; ".join(self.lacks)
        match self.strength:
            case "reduced":
                return (
                    "The agent's commands are shut in less well than they should be on this "
                    f"machine: {lacks}. See: holdfast doctor"
                )
            case "none":
                return (
                    "The agent's commands cannot be shut in on this machine "
                    f"({lacks}), so you are asked about each. See: holdfast doctor"
                )
            case _:
                return ""


def sandbox_for(
    root: str,
    scratch: str,
    readable: Iterable[str] = (),
    writable: Iterable[str] = (),
    *,
    has_network: bool = False,
) -> dict[str, object]:
    """The project and a directory for temporary files, of all else only what is for everyone.

    `readable` and `writable` are further paths; one that can be written may lie in a readable one.

    Names that programs obey stay as they are. Without leave nobody else is reached.
    """
    return {
        "permissions": {
            "type": "managed",
            "file_system": {
                "type": "restricted",
                "entries": [
                    {
                        "path": {"type": "special", "value": {"kind": "minimal"}},
                        "access": "read",
                    },
                    *({"path": _path(each), "access": "read"} for each in readable),
                    {
                        "path": {"type": "special", "value": {"kind": "project_roots"}},
                        "access": "write",
                    },
                    *({"path": _path(each), "access": "write"} for each in (scratch, *writable)),
                ],
            },
            "network": "enabled" if has_network else "restricted",
        },
        "workspaceRoots": [root],
    }


def _path(path: str) -> dict[str, str]:
    return {"type": "path", "path": path}
