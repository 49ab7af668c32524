"""What a server leaves to its porter is its own again, and nobody else's."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from holdfast.exec.server.socket_activation import IdleHandover, without_rest

NAME = "HOLDFAST_RESTED"


@pytest.mark.parametrize("value", ["", "1:3:4:0:/state"], ids=["nothing", "another's"])
def test_who_has_not_rested_has_nothing(value: str) -> None:
    assert IdleHandover.over({NAME: value}) is None


def test_what_was_left_is_found_and_inherited_by_nobody() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        fd, lock = os.dup(listener.fileno()), os.open(os.devnull, os.O_RDONLY)
        os.set_inheritable(fd, True)
        os.set_inheritable(lock, True)
        rest = IdleHandover.over({NAME: f"{os.getpid()}:{fd}:{lock}:1:/a:b"})

        assert rest is not None
        with rest.listener:
            address = rest.listener.getsockname()
            found = (address, rest.lock, rest.state, rest.is_private)
            assert found == (listener.getsockname(), lock, Path("/a:b"), True)
            assert not (os.get_inheritable(fd) or os.get_inheritable(lock))
        os.close(lock)


def test_a_child_learns_nothing_of_it() -> None:
    assert without_rest({NAME: "1:2:3", "A": "1"}) == {"A": "1"}
