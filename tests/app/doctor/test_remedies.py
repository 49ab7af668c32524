"""The exact command, for each distribution and for root."""

from __future__ import annotations

import pytest

from holdfast.app.doctor.model import Machine
from holdfast.app.doctor.remedies import as_root, family_of, install, install_agent, install_profile


@pytest.mark.parametrize(
    ("name", "like", "expected"),
    [
        ("debian", "", "debian"),
        ("ubuntu", "debian", "debian"),
        ("linuxmint", "ubuntu debian", "debian"),
        ("rocky", "rhel centos fedora", "fedora"),
        ("opensuse-leap", "suse opensuse", "suse"),
        ("arch", "", "arch"),
        ("alpine", "", "alpine"),
        ("nixos", "", ""),
        ("", "", ""),
    ],
)
def test_family(name: str, like: str, expected: str) -> None:
    assert family_of(name, like) == expected


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (Machine(system="Linux", family="debian"), "sudo apt install git"),
        (Machine(system="Linux", family="debian", is_root=True), "apt install git"),
        (Machine(system="Linux", family="fedora"), "sudo dnf install git"),
        (Machine(system="Linux", family="arch", is_root=True), "pacman -S git"),
        (Machine(system="Linux"), "install git with the package manager of your system"),
        (Machine(system="Darwin", is_root=True), "brew install git"),
    ],
)
def test_install(machine: Machine, expected: str) -> None:
    assert install("git", machine) == expected


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (Machine(system="Linux"), "sudo npm install -g @openai/codex"),
        (Machine(system="Linux", is_root=True), "npm install -g @openai/codex"),
        (Machine(system="Darwin"), "npm install -g @openai/codex"),
    ],
)
def test_install_agent(machine: Machine, expected: str) -> None:
    assert install_agent("codex", machine) == expected


def test_root_needs_no_sudo() -> None:
    assert as_root("id", Machine(system="Linux", is_root=True)) == "id"
    assert as_root("id", Machine(system="Linux")) == "sudo id"


def test_the_profile_of_apparmor_is_filled_in_and_loaded() -> None:
    person = Machine(system="Linux", family="debian")

    assert install_profile("/lib/a b/holdfast", "/home/me/bin/holdfast", person) == (
        "sed 's|@HOLDFAST@|/home/me/bin/holdfast|' '/lib/a b/holdfast'"
        " | sudo tee /etc/apparmor.d/holdfast >/dev/null"
        " && sudo apparmor_parser -r /etc/apparmor.d/holdfast"
    )
