"""What is below a directory and in a checkpoint, in one form, to be compared; and what to keep."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

from holdfast.nouns import RelativePath
from holdfast.workbench.model import Checkpoint
from holdfast.workbench.objects.formats import NodeKind
from holdfast.workbench.store.store import Store
from tests.workbench.benches import DraftState

Sight = dict[bytes, DraftState]
"""All that is below a directory, by path."""
Views = dict[str, Sight]
"""What is looked at: the project, and every draft."""
Kept = dict[str, Sight]
"""What every acknowledged checkpoint must hold, by its id."""


def kept_sight(store: Store, checkpoint: Checkpoint, paths: list[bytes]) -> Sight:
    """What a checkpoint has at these paths, every byte read back and checked."""
    found: Sight = {}
    for path in paths:
        node = store.node(checkpoint, RelativePath.of(path))
        if node is None:
            continue
        xattrs = tuple((os.fsdecode(name), value) for name, value in node.xattrs)
        match node.kind:
            case NodeKind.FILE:
                content = b"".join(store.content(node.object))
            case NodeKind.LINK:
                found[path] = ("link", 0, node.detail, ())
                continue
            case _:
                content = b""
        found[path] = (node.kind.name.lower(), node.mode, content, xattrs)
    return found


def make_project(project: Path) -> None:
    """A small project with one of everything."""
    project.mkdir(parents=True)
    (project / "readme").write_text("read me\n")
    (project / "src" / "deep").mkdir(parents=True)
    for number in range(3):
        (project / "src" / f"file{number}").write_text(f"line {number}\n" * (20 + number))
    (project / "src" / "deep" / "old").write_bytes(Random(1).randbytes(3000))
    (project / "src" / "tool").write_text("#!/bin/sh\n")
    (project / "src" / "tool").chmod(0o755)
    (project / "empty").mkdir()
    (project / "link").symlink_to("src/file0")
    (project / os.fsdecode(b"n\xff\xfename")).write_bytes(b"any bytes")
    os.setxattr(project / "readme", "user.note", b"kept")


def edit_project(project: Path) -> None:
    """Change some of everything."""
    (project / "src" / "file1").write_text("edited\n" * 30)
    (project / "src" / "deep" / "new").write_bytes(Random(2).randbytes(5000))
    (project / "src" / "deep" / "old").unlink()
    (project / "src" / "tool").chmod(0o700)
    (project / "made" / "in").mkdir(parents=True)
    (project / "made" / "in" / "file").write_text("made\n")


def missing_from(store: Store, kept: Kept) -> list[str]:
    """What acknowledged checkpoints do not give back, byte for byte."""
    wrong: list[str] = []
    for id, expected in kept.items():
        found = kept_sight(store, store.find(id), list(expected))
        differing = [path for path in expected if found.get(path) != expected[path]]
        if differing:
            wrong.append(f"checkpoint {id} does not give back {differing}")
    return wrong
