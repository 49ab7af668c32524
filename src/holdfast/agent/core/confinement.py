"""What a command of the agent may touch, in the words that the process plane understands."""

from __future__ import annotations

from collections.abc import Iterable


def sandbox_for(
    root: str, scratch: str, readable: Iterable[str] = (), *, has_network: bool = False
) -> dict[str, object]:
    """The project and a directory for temporary files, of all else only what is for everyone.

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
                    {"path": _path(scratch), "access": "write"},
                ],
            },
            "network": "enabled" if has_network else "restricted",
        },
        "workspaceRoots": [root],
    }


def _path(path: str) -> dict[str, str]:
    return {"type": "path", "path": path}
