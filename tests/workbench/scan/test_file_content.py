"""A file is kept as it was at one moment, or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.workbench.model import UncoveredReason
from holdfast.workbench.objects.formats import (
    PIECE_BYTES,
    WHOLE_BYTES_MAX,
    Node,
    NodeKind,
    ObjectKind,
    name_of,
    uncovered,
)
from holdfast.workbench.objects.index import Index
from holdfast.workbench.objects.objects import Objects, content
from holdfast.workbench.objects.segments import Segments
from holdfast.workbench.scan.file_content import TRIES_MAX, content_id_of, read_node, read_xattrs
from tests.workbench.unprivileged import held_back


class Disturbed(Objects):
    """Objects of a store while somebody writes to what is being read."""

    disturb: Callable[[], object]

    def put(self, kind: ObjectKind, data: bytes) -> bytes:
        self.disturb()
        return super().put(kind, data)


@pytest.fixture
def objects(segments: Segments, index: Index) -> Iterator[Disturbed]:
    with index.writing() as rows:
        made = Disturbed(segments, rows)
        made.disturb = lambda: None
        yield made


@pytest.fixture
def directory(project: Path) -> Iterator[int]:
    descriptor = os.open(project, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def test_a_file_is_kept_with_all_that_is_known_about_it(
    objects: Disturbed, directory: int, project: Path
) -> None:
    path = project / "run"
    path.write_bytes(b"#!/bin/sh\r\n")
    path.chmod(0o4751)
    os.utime(path, ns=(1, 1_234_567_890_123_456_789))
    status = path.lstat()

    assert read_node(objects, directory, b"run", status) == (
        Node(
            b"run",
            NodeKind.FILE,
            0o4751,
            11,
            1_234_567_890_123_456_789,
            name_of(ObjectKind.BLOB, b"#!/bin/sh\r\n"),
        ),
        status,
    )


def test_a_link_is_kept_as_it_is_spelled(objects: Disturbed, directory: int, project: Path) -> None:
    os.symlink(b"../\xff nowhere", bytes(project / "link"))
    node, _ = read_node(objects, directory, b"link", (project / "link").lstat())

    assert node is not None
    assert (node.kind, node.detail, node.mode) == (NodeKind.LINK, b"../\xff nowhere", 0o777)


def test_a_large_file_costs_what_has_changed_of_it(
    objects: Disturbed, directory: int, project: Path, segments: Segments
) -> None:
    path = project / "large"
    data = bytearray(os.urandom(WHOLE_BYTES_MAX + 3 * PIECE_BYTES + 5))
    path.write_bytes(data)
    first, _ = read_node(objects, directory, b"large", path.lstat())
    objects.commit()
    size = segments.size(1)
    data[5_000_000:5_004_096] = os.urandom(4096)
    path.write_bytes(data)
    second, _ = read_node(objects, directory, b"large", path.lstat())
    objects.commit()

    assert first is not None
    assert second is not None
    assert b"".join(content(second.object, objects.get)) == data
    assert objects.kind_of(first.object) is ObjectKind.PIECES
    assert segments.size(1) - size < PIECE_BYTES + 2000


def test_attributes_of_the_person_are_kept(
    objects: Disturbed, directory: int, project: Path
) -> None:
    path = project / "noted"
    path.write_bytes(b"")
    try:
        os.setxattr(path, "user.note", b"\0\xff")
        os.setxattr(path, "user.also", b"")
    except OSError:
        pytest.skip("the file system of the temporary directory has no extended attributes")
    node, _ = read_node(objects, directory, b"noted", path.lstat())

    assert node is not None
    assert node.xattrs == ((b"user.also", b""), (b"user.note", b"\0\xff"))
    assert read_xattrs(directory) == ()


def test_what_is_written_to_meanwhile_is_read_again(
    objects: Disturbed, directory: int, project: Path
) -> None:
    path = project / "log"
    path.write_bytes(b"first")
    status = path.lstat()
    texts = iter([b"second", b"second"])
    objects.disturb = lambda: path.write_bytes(next(texts)) if path.read_bytes() == b"first" else 0
    node, found = read_node(objects, directory, b"log", status)

    assert node is not None
    assert node.object == name_of(ObjectKind.BLOB, b"second")
    assert (node.size, found.st_size) == (6, 6)


def test_what_never_holds_still_is_not_covered(
    objects: Disturbed, directory: int, project: Path
) -> None:
    path = project / "log"
    path.write_bytes(b"")
    rounds: list[int] = []

    def write_more() -> None:
        rounds.append(1)
        with path.open("ab") as file:
            file.write(b"more")

    objects.disturb = write_more
    node, _ = read_node(objects, directory, b"log", path.lstat())

    assert node == uncovered(b"log", UncoveredReason.CHANGING)
    assert len(rounds) == TRIES_MAX


def test_what_is_gone_is_gone(objects: Disturbed, directory: int, project: Path) -> None:
    path = project / "short-lived"
    path.write_bytes(b"")
    status = path.lstat()
    path.unlink()

    assert read_node(objects, directory, b"short-lived", status) == (None, status)


@pytest.mark.promise("W10")
def test_a_file_that_became_a_link_is_not_followed(
    objects: Disturbed, directory: int, project: Path
) -> None:
    path = project / "turncoat"
    path.write_bytes(b"")
    status = path.lstat()
    path.unlink()
    path.symlink_to("/etc/passwd")
    node, _ = read_node(objects, directory, b"turncoat", status)

    assert node is not None
    assert (node.kind, node.detail) == (NodeKind.LINK, b"/etc/passwd")


def test_a_file_that_became_a_pipe_is_not_waited_for(
    objects: Disturbed, directory: int, project: Path
) -> None:
    path = project / "turncoat"
    path.write_bytes(b"")
    status = path.lstat()
    path.unlink()
    os.mkfifo(path)

    assert read_node(objects, directory, b"turncoat", status)[0] == uncovered(
        b"turncoat", UncoveredReason.CHANGING
    )


@pytest.mark.promise("W9")
def test_what_may_not_be_read_is_listed(objects: Disturbed, directory: int, project: Path) -> None:
    path = project / "secret"
    path.write_bytes(b"")
    path.chmod(0)
    status = path.lstat()
    with held_back():
        node, _ = read_node(objects, directory, b"secret", status)

    assert node == uncovered(b"secret", UncoveredReason.UNREADABLE)


@pytest.mark.parametrize("size", [0, 5, WHOLE_BYTES_MAX, WHOLE_BYTES_MAX + 1])
def test_a_content_has_the_same_name_whether_it_is_kept_or_only_hashed(
    objects: Disturbed, directory: int, project: Path, size: int
) -> None:
    path = project / "f"
    path.write_bytes(bytes(size))
    node, _ = read_node(objects, directory, b"f", path.lstat())
    with path.open("rb") as file:
        file.read(3)  # wherever it is read from

        assert node is not None
        assert content_id_of(file.fileno(), size) == node.object
        assert content_id_of(file.fileno(), size + 1) == node.object  # it was longer a moment ago
