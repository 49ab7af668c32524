"""Everything that the doctor looks at, in the order in which it is shown."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path

from holdfast.app.doctor import confinement, storage
from holdfast.app.doctor import confinement as surroundings
from holdfast.app.doctor import storage as runtime
from holdfast.app.doctor.children import ask, try_program
from holdfast.app.doctor.doctor import Check, Look
from holdfast.app.doctor.keyring import keyring_usable
from holdfast.app.doctor.model import Finding, Machine
from holdfast.app.doctor.remedies import install_profile
from holdfast.app.settings import KNOWN, Settings

_DEATHS = ("--pdeathsig", "KILL", "--", "true")
_PROFILE = Path(__file__).with_name("apparmor") / "holdfast"
_BUBBLEWRAP = ("--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "true")


def checks(settings: Settings, machine: Machine) -> tuple[Check, ...]:
    """All checks, for these settings on this machine."""
    return (
        *_runtime(settings, machine),
        *_storage(settings),
        *_sandboxes(settings, machine),
        *_confinement(settings, machine),
        *_network(settings, machine),
        *_programs(settings, machine),
    )


def _runtime(settings: Settings, machine: Machine) -> tuple[Check, ...]:
    async def python() -> Finding:
        facts = runtime.Interpreter(
            sys.version_info[:3], platform.python_implementation(), sys.maxsize > 2**32
        )
        return runtime.judge_interpreter(facts, machine)

    async def sqlite() -> Finding:
        facts = await ask("database.sqlite", str(settings.state), runtime.Sqlite)
        return runtime.judge_sqlite(facts, machine)

    async def variables() -> Finding:
        return runtime.judge_variables(settings.unknown, known=KNOWN)

    return (
        Check("python.version", "Runtime", "Python", python),
        Check("sqlite.usable", "Runtime", "SQLite", sqlite),
        Check("settings.variables", "Runtime", "settings", variables),
    )


def _storage(settings: Settings) -> tuple[Check, ...]:
    state = str(settings.state)

    async def home() -> Finding:
        return storage.judge_home(await ask("storage.home", state, storage.Home), wanted=state)

    async def syncing() -> Finding:
        facts = await ask("storage.syncing", state, storage.Syncing)
        return storage.judge_syncing(facts, _mountinfo(), preload=settings.preload)

    async def space() -> Finding:
        return storage.judge_space(await ask("storage.space", state, storage.Space))

    async def clock() -> Finding:
        return storage.judge_clock(await ask("storage.clock", state, storage.Clock))

    return (
        Check("state.writable", "Storage", "state directory", home),
        Check("state.durable", "Storage", "durable writes", syncing),
        Check("state.space", "Storage", "free space", space),
        Check("clock.sane", "Storage", "clock", clock),
    )


def _sandboxes(settings: Settings, machine: Machine) -> tuple[Check, ...]:
    async def strength() -> Finding:
        return confinement.judge_sandbox(await ask("sandbox.strength", "", confinement.Sandbox))

    async def place() -> Finding:
        facts = await ask("sandbox.place", str(settings.state), confinement.Place)
        return confinement.judge_place(facts)

    async def user() -> Finding:
        return confinement.judge_user(machine)

    return (
        _on_linux("strength", "sandbox", strength),
        _on_linux("place", "places", place),
        _on_linux("user", "user", user),
    )


def _confinement(settings: Settings, machine: Machine) -> tuple[Check, ...]:
    state = str(settings.state)

    async def bubblewrap() -> Finding:
        return confinement.judge_bubblewrap(await try_program("bwrap", *_BUBBLEWRAP), machine)

    async def namespaces() -> Finding:
        facts = await ask("confinement.namespaces", state, confinement.Namespaces)
        profile = install_profile(str(_PROFILE), _own_program(), machine)
        return confinement.judge_namespaces(facts, machine, profile=profile)

    async def landlock() -> Finding:
        return confinement.judge_landlock(
            await ask("confinement.landlock", state, confinement.Landlock)
        )

    async def overlay() -> Finding:
        return confinement.judge_overlay(
            await ask("confinement.overlay", state, confinement.Overlay)
        )

    async def open_beneath() -> Finding:
        facts = await ask("paths.leaving", "/", confinement.OpenBeneath)
        return confinement.judge_open_beneath(facts)

    async def cgroup() -> Finding:
        return confinement.judge_cgroup(
            await ask("confinement.cgroup", state, confinement.Cgroup), machine
        )

    async def deaths() -> Finding:
        return confinement.judge_deaths(await try_program("setpriv", *_DEATHS), machine)

    return (
        _on_linux("bubblewrap", "bubblewrap", bubblewrap),
        _on_linux("namespaces", "user namespaces", namespaces),
        _on_linux("landlock", "Landlock", landlock),
        _on_linux("overlay", "overlay mounts", overlay),
        _on_linux("openat2", "safe paths", open_beneath),
        _on_linux("cgroup", "process groups", cgroup),
        _on_linux("setpriv", "orphans", deaths),
    )


def _on_linux(word: str, title: str, look: Look) -> Check:
    return Check(f"sandbox.{word}", "Sandbox", title, look, only_on="Linux")


def _network(settings: Settings, machine: Machine) -> tuple[Check, ...]:
    runtime_directory = str(settings.runtime)

    async def loopback() -> Finding:
        return surroundings.judge_loopback(await ask("network.loopback", "", surroundings.Reached))

    async def socket() -> Finding:
        facts = await ask("network.unix", runtime_directory, surroundings.Reached)
        return surroundings.judge_socket(facts, machine, directory=runtime_directory)

    return (
        Check("network.loopback", "Network", "loopback ports", loopback),
        Check("network.socket", "Network", "Unix sockets", socket),
    )


def _programs(settings: Settings, machine: Machine) -> tuple[Check, ...]:
    places = {"codex": settings.codex}

    def check(name: str) -> Check:
        async def program() -> Finding:
            facts = await try_program(places.get(name, name), "--version")
            return surroundings.judge_program(facts, machine, name=name)

        return Check(f"program.{name}", "Programs (optional)", name, program)

    async def keyring() -> Finding:
        return surroundings.judge_keyring(await keyring_usable())

    return (
        *map(check, ("codex", "node", "git", "rg")),
        Check("program.keyring", "Programs (optional)", "keyring", keyring),
    )


def _own_program() -> str:
    """The file by which a person runs us."""
    return shutil.which("holdfast") or os.path.abspath(sys.argv[0])


def _mountinfo() -> str:
    """The text that lists all mounts; nothing on systems that keep no such text."""
    path = Path("/proc/self/mountinfo")
    return path.read_text(errors="surrogateescape") if path.exists() else ""
