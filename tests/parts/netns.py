"""A network of one's own: a namespace behind a cable that can be unplugged, starved and moved."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address

import pytest

_NETWORKS = int(IPv4Address("198.18.0.0"))  # reserved for trials: nobody's real network is hidden
_NOBODY = "02:00:00:00:00:99"


@dataclass
class Network:
    """Our end and a namespace at the other, joined by a cable; each method is a fault or its end.

    `far` is the address in the namespace, `near` ours; `inside` are the words that let a command
    become one of the namespace.
    """

    name: str
    near: str
    far: str

    @property
    def inside(self) -> Sequence[str]:
        return ("ip", "netns", "exec", self.name)

    def unplug(self) -> None:
        """Take the link away from the other side, which keeps its addresses."""
        _run(*self.inside, "ip", "link", "set", "far", "down")

    def plug_in(self) -> None:
        """Give it back."""
        _run(*self.inside, "ip", "link", "set", "far", "up")

    def mislead(self) -> None:
        """Let everything that we send go to nobody; what is sent to us arrives."""
        _run("ip", "neigh", "replace", self.far, "lladdr", _NOBODY, "dev", self.name)

    def lead(self) -> None:
        """Let it arrive again."""
        _run("ip", "neigh", "del", self.far, "dev", self.name)

    def starve(self) -> None:
        """Drop every packet from there that finds more than two others in its way."""
        limits = ("rate", "8mbit", "burst", "2000", "limit", "4000")
        _run(*self.inside, "tc", "qdisc", "add", "dev", "far", "root", "tbf", *limits)

    @property
    def dropped(self) -> int:
        """How many packets a starved cable has lost."""
        shown = _run(*self.inside, "tc", "-s", "qdisc", "show", "dev", "far")
        found = re.search(r"dropped (\d+)", shown)
        assert found, shown
        return int(found[1])

    def remove(self) -> None:
        """Take the whole cable away: both ends go on believing in their connections."""
        _run("ip", "link", "del", self.name)

    def move(self) -> None:
        """Lay a new cable, with another address for us: what belonged to the old one is lost."""
        self.near, old = str(IPv4Address(self.far) + 1), self.near
        assert old != self.near
        self.lay()

    def lay(self) -> None:
        _run("ip", "link", "add", self.name, "type", "veth", "peer", "far", "netns", self.name)
        _run("ip", "addr", "add", f"{self.near}/29", "dev", self.name)
        _run("ip", "link", "set", self.name, "up")
        _run(*self.inside, "ip", "addr", "add", f"{self.far}/29", "dev", "far")
        _run(*self.inside, "ip", "link", "set", "far", "up")


@contextmanager
def network() -> Iterator[Network]:
    """One network, gone afterwards; skips the test that asks where none can be made."""
    if (missing := _missing_once()) is not None:
        pytest.skip(f"no network namespaces: {missing}")
    first = _NETWORKS + (os.getpid() & 0x3FFF) * 8
    made = Network(f"hf{os.getpid()}", str(IPv4Address(first + 1)), str(IPv4Address(first + 2)))
    try:
        _run("ip", "netns", "add", made.name)
        _run(*made.inside, "ip", "link", "set", "lo", "up")
        made.lay()
        yield made
    finally:
        subprocess.run(["ip", "netns", "del", made.name], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", made.name], check=False, capture_output=True)


@functools.cache
def _missing_once() -> str | None:
    """What keeps us from making networks here, if anything does: trying tells."""
    if shutil.which("ip") is None:
        return "the program ip (iproute2) is missing"
    name = f"hf{os.getpid()}-try"
    try:
        _run("ip", "netns", "add", name)
        _run("ip", "link", "add", f"{name}"[:15], "type", "veth", "peer", "far", "netns", name)
    except subprocess.CalledProcessError as error:
        return str(error.stderr).strip() or "the kernel refuses"
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
    return None


def _run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout
