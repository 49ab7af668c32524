"""Start a process that enters a place or a sandbox: by the way in that an order describes."""

from __future__ import annotations

import base64
import binascii
import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from holdfast.confine import Entry, Fence, enter
from holdfast.exec.keeper.protocol import (
    Malformed,
    Message,
    mapping,
    number,
    numbers,
    text,
    texts,
)

_SHELL = "/bin/sh"


class Way:
    """What a process enters and what holds it back; its descriptors came beside the order.

    They stand in this order: namespaces, groups, and what the process gets to keep.
    """

    def __init__(self, message: Message, descriptors: Sequence[int]) -> None:
        namespaces, groups = number(message, "namespaces"), number(message, "groups")
        carried = numbers(message, "carried")
        counts = (namespaces, groups, len(carried))
        if len(descriptors) < sum(counts):  # they were sent, and did not all find room here
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        if min(counts) < 0 or sum(counts) != len(descriptors):
            raise Malformed("there are other descriptors than the way in needs")
        if len(set(carried)) != len(carried) or any(target < 3 for target in carried):
            raise Malformed("no descriptor can be carried there")
        self._is_led = message.get("is_led") is True
        self._carried = dict(zip(descriptors[namespaces + groups :], carried, strict=True))
        self._entry = Entry(
            argv=(),
            env={},
            cwd="/",
            program=text(message, "program"),
            namespaces=tuple(descriptors[:namespaces]),
            groups=tuple(descriptors[namespaces : namespaces + groups]),
            limits=_limits(message),
            is_unprivileged=message.get("is_unprivileged") is True,
            fence=_fence(message),
            filter=_bytes(message, "filter"),
            shields=texts(message, "shields"),
        )

    @property
    def leads_to_place(self) -> bool:
        """Whether it leads into namespaces that somebody else holds."""
        return bool(self._entry.namespaces)

    def start(
        self, argv: list[str], env: Mapping[str, str], cwd: str, ends: Mapping[int, int]
    ) -> int:
        """The number of a process that has entered, with these ends as its first descriptors."""
        files = {os.dup(end): target for target, end in ends.items()}
        try:
            # Whoever leads a session gets the terminal; in there that may be somebody else.
            has_terminal = os.isatty(ends[0]) and not self._is_led
            entry = replace(
                self._entry,
                argv=argv,
                env=env,
                cwd=cwd,
                files={**files, **self._carried},
                is_terminal=has_terminal,
            )
            try:
                return enter(entry)
            except OSError as error:
                if error.errno != errno.ENOEXEC:
                    raise
                words = [_SHELL, entry.program, *argv[1:]]
                return enter(replace(entry, argv=words, program=_SHELL))
        finally:
            for end in files:
                os.close(end)


def _limits(message: Message) -> tuple[tuple[int, int], ...]:
    pairs = numbers(message, "limits")
    return tuple(zip(pairs[::2], pairs[1::2], strict=False))


def _fence(message: Message) -> Fence | None:
    if message.get("fence") is None:
        return None
    fence = mapping(message, "fence")
    paths, rights = texts(fence, "paths"), numbers(fence, "rights")
    if len(paths) != len(rights):
        raise Malformed("a fence must say what is granted at each path")
    return Fence(
        files=number(fence, "files"),
        network=number(fence, "network"),
        scopes=number(fence, "scopes"),
        grants=tuple(zip(paths, rights, strict=True)),
    )


def _bytes(message: Message, name: str) -> bytes:
    try:
        return base64.b64decode(text(message, name), validate=True)
    except binascii.Error as error:
        raise Malformed(f"{name} is not base64") from error
