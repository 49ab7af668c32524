"""Random deeds in a small tree, by an agent in its draft or by the person in the project."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

NAMES = ("a", "b", "c", os.fsdecode(b"\xff"))


def furnish(root: Path) -> None:
    """Put something at many of the paths that deeds are done to."""
    for top in NAMES[:3]:
        (root / top / "c").mkdir(parents=True)
        for below in ("a", "b", "c/a", "c/b"):
            (root / top / below).write_text(f"{top}/{below}")


def scribble(root: str, chance: Random) -> None:
    """Do one thing below a directory; what is not possible there is not done."""
    deed = chance.choice(_DEEDS)
    with suppress(OSError, shutil.Error):
        deed(_path(root, chance), _path(root, chance), chance)


def _path(root: str, chance: Random) -> Path:
    depth = chance.choice((1, 1, 2, 2, 3))
    return Path(root, *(chance.choice(NAMES) for _ in range(depth)))


def _write(path: Path, _: Path, chance: Random) -> None:
    if not path.is_fifo():  # nobody reads it
        path.write_bytes(chance.randbytes(chance.choice((0, 3, 5000))))


def _append(path: Path, _: Path, __: Random) -> None:
    if not path.is_fifo():
        with path.open("ab") as file:
            file.write(b"more")


def _save_over(path: Path, _: Path, chance: Random) -> None:
    swap = path.with_name("swap")
    swap.write_bytes(chance.randbytes(4))
    swap.rename(path)


def _make_directory(path: Path, _: Path, __: Random) -> None:
    path.mkdir(parents=True)


def _remove(path: Path, _: Path, __: Random) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _replace_by_directory(path: Path, _: Path, chance: Random) -> None:
    _remove(path, path, chance)
    path.mkdir()
    (path / "a").write_text("within")


def _rename(path: Path, other: Path, _: Random) -> None:
    path.rename(other)


def _move(path: Path, other: Path, _: Random) -> None:
    shutil.move(path, other)


def _link(path: Path, other: Path, _: Random) -> None:
    path.symlink_to(other.name)


def _second_name(path: Path, other: Path, _: Random) -> None:
    os.link(path, other)


def _chmod(path: Path, _: Path, chance: Random) -> None:
    path.chmod(chance.choice((0o600, 0o644, 0o700, 0o755)) | 0o700 * path.is_dir())


def _mark(path: Path, _: Path, chance: Random) -> None:
    os.setxattr(path, "user.mark", chance.randbytes(2), follow_symlinks=False)


def _age(path: Path, _: Path, chance: Random) -> None:
    os.utime(path, ns=(0, chance.randrange(10**18)), follow_symlinks=False)


def _fifo(path: Path, _: Path, __: Random) -> None:
    os.mkfifo(path)


_DEEDS: tuple[Callable[[Path, Path, Random], None], ...] = (
    _write,
    _write,
    _append,
    _save_over,
    _make_directory,
    _make_directory,
    _remove,
    _remove,
    _replace_by_directory,
    _rename,
    _move,
    _link,
    _second_name,
    _chmod,
    _mark,
    _age,
    _fifo,
)
