"""Change files as a program does, on the disk and in a model at once."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from holdfast.nouns import RelativePath
from holdfast.workbench.model import EntryKind, PathEntry
from tests.faults.draft_model import CONTENTS, Tree, below, directory, file_of, link_to

NAMES = ("a", "b", "c")
DEPTH_MAX = 3
LINES = 12
_FILE_MODES, _DIRECTORY_MODES = (0o644, 0o600, 0o755), (0o755, 0o700, 0o750)


def tree_of(root: Path) -> Tree:
    """All that is below a directory; what a transaction staged must be gone."""
    found: Tree = {}
    _walk(os.fsencode(root), (), found)
    return found


def _walk(where: bytes, parts: tuple[bytes, ...], found: Tree) -> None:
    with os.scandir(where) as listed:
        entries = list(listed)
    for each in entries:
        at = (*parts, each.name)
        entry = entry_of(each.path)
        found[RelativePath(at)] = entry
        if entry.is_directory:
            _walk(each.path, at, found)


def entry_of(path: bytes) -> PathEntry:
    status = os.lstat(path)
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return link_to(os.readlink(path))
    if stat.S_ISDIR(status.st_mode):
        return directory(mode)
    with open(path, "rb") as file:
        return file_of(file.read(), mode)


def text(chance: Random) -> bytes:
    """Lines that differ here and there: two versions often merge, and have several hunks."""
    return b"".join(b"%d %d\n" % (line, chance.randrange(2)) for line in range(LINES))


@dataclass
class Files:
    """A directory on the disk and the tree of a model, which change together."""

    root: Callable[[], Path]
    tree: Callable[[], Tree]

    def change(self, chance: Random) -> str:
        """Do one thing that is possible; say what."""
        tree = self.tree()
        kinds = ["write", "write", "make", "remove", "rename", "replace", "chmod", "renew"]
        kind = chance.choice(kinds)
        if not tree:
            kind = "make"
        return getattr(self, f"_{kind}")(chance)

    def place(self, chance: Random) -> RelativePath:
        """A path of which the parent is a directory, or could be nothing at all."""
        homes: list[RelativePath | None] = [None]
        homes += [
            path
            for path, entry in sorted(self.tree().items())
            if entry.is_directory and len(path.parts) < DEPTH_MAX
        ]
        home, name = chance.choice(homes), chance.choice(NAMES)
        return RelativePath.of(name) if home is None else home / name.encode()

    def any(self, chance: Random) -> RelativePath:
        return chance.choice(sorted(self.tree()))

    def remove(self, path: RelativePath) -> None:
        where = self.root() / str(path)
        if where.is_dir() and not where.is_symlink():
            shutil.rmtree(where)
        else:
            where.unlink()
        for each in below(self.tree(), path):
            del self.tree()[each]

    def put(self, path: RelativePath, entry: PathEntry) -> None:
        """Put something where nothing is."""
        where = self.root() / str(path)
        match entry.kind:
            case EntryKind.LINK:
                os.symlink(entry.target, os.fsencode(where))
            case EntryKind.DIRECTORY:
                where.mkdir()
                where.chmod(entry.mode)
            case _:
                where.write_bytes(CONTENTS[entry.content])
                where.chmod(entry.mode)
        self.tree()[path] = entry

    def _write(self, chance: Random) -> str:
        path = self.place(chance)
        was = self.tree().get(path)
        entry = file_of(text(chance), chance.choice(_FILE_MODES[:2]))
        where = self.root() / str(path)
        if was is None:
            self.put(path, entry)
            return f"create {path}"
        if was.kind is not EntryKind.FILE:
            return f"nothing at {path}"
        if chance.random() < 0.5:  # as editors save
            beside = where.with_name("saving")
            beside.write_bytes(CONTENTS[entry.content])
            beside.chmod(entry.mode)
            beside.rename(where)
            self.tree()[path] = entry
            return f"save {path}"
        where.write_bytes(CONTENTS[entry.content])
        self.tree()[path] = file_of(CONTENTS[entry.content], was.mode)
        return f"write {path}"

    def _make(self, chance: Random) -> str:
        path = self.place(chance)
        if path in self.tree():
            return f"nothing at {path}"
        self.put(path, directory(chance.choice(_DIRECTORY_MODES)))
        said = f"mkdir {path}"
        for name in chance.sample(NAMES, chance.randrange(3)):
            if len(path.parts) < DEPTH_MAX:
                self.put(path / name.encode(), file_of(text(chance)))
                said += f" +{name}"
        return said

    def _remove(self, chance: Random) -> str:
        path = self.any(chance)
        self.remove(path)
        return f"remove {path}"

    def _rename(self, chance: Random) -> str:
        old, new = self.any(chance), self.place(chance)
        tree = self.tree()
        depth = max(len(each.parts) for each in below(tree, old)) - len(old.parts)
        if new.within(old) or old.within(new) or len(new.parts) + depth > DEPTH_MAX:
            return f"nothing from {old}"
        if new in tree:
            self.remove(new)
        self.move(old, new)
        for each in below(tree, old):
            tree[RelativePath((*new.parts, *each.parts[len(old.parts) :]))] = tree.pop(each)
        return f"rename {old} to {new}"

    def move(self, old: RelativePath, new: RelativePath) -> None:
        """Rename as `mv` does: by a copy, where the system refuses."""
        source, target = self.root() / str(old), self.root() / str(new)
        try:
            source.rename(target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            shutil.copytree(source, target, symlinks=True)
            shutil.rmtree(source)

    def _replace(self, chance: Random) -> str:
        """Something else takes the place of what is there."""
        path = self.any(chance)
        self.remove(path)
        entries = (file_of(text(chance)), link_to(b"to/" + path.parts[-1]), directory())
        entry = chance.choice(entries)
        self.put(path, entry)
        return f"replace {path} by a {entry.kind}"

    def _chmod(self, chance: Random) -> str:
        path = self.any(chance)
        entry = self.tree()[path]
        if entry.kind is EntryKind.LINK:
            return f"nothing at {path}"
        mode = chance.choice(_DIRECTORY_MODES if entry.is_directory else _FILE_MODES)
        (self.root() / str(path)).chmod(mode)
        data = b"" if entry.is_directory else CONTENTS[entry.content]
        self.tree()[path] = directory(mode) if entry.is_directory else file_of(data, mode)
        return f"chmod {mode:o} {path}"

    def _renew(self, chance: Random) -> str:
        """Remove something and make it again, as switching branches there and back does."""
        path = self.any(chance)
        was = {each: self.tree()[each] for each in below(self.tree(), path)}
        self.remove(path)
        for each, entry in was.items():
            self.put(each, entry)
        return f"renew {path}"
