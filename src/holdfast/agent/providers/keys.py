"""Where the keys of providers come from, and that nobody sees them by accident."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, Protocol

import msgspec

from holdfast.agent.failures import KeyFileOpen, KeyMissing, SettingsUnreadable
from holdfast.agent.providers.registry import Provider
from holdfast.failures import Failure
from holdfast.telemetry import KnownRedactor
from holdfast.world import disk_failure

_BYTES_MAX = 64 * 1024


class ApiKey:
    """A key that can be used, but not shown, copied or written down by accident."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The key itself, for who sends it to its provider."""
        return self._value

    def __repr__(self) -> str:
        return "Key(***)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not written down")


class KeySource(Protocol):
    """Somewhere that keys may be."""

    def find(self, provider: Provider) -> str | None:
        """The key of a provider, if it is here."""
        ...


class EnvironmentKeys:
    """Keys in the variables of an environment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def find(self, provider: Provider) -> str | None:
        """The value of the provider's variable."""
        return self._environment.get(provider.variable) if provider.variable else None


class FileKeys:
    """Keys in a file of ours that nobody else can read: `openai = "sk-…"`, a line for each."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def find(self, provider: Provider) -> str | None:
        """The provider's line; a file that others may read is refused."""
        return self._read().get(provider.name)

    def check(self) -> None:
        """Raise what is wrong with the file; that there is none is fine."""
        self._read()

    def _read(self) -> dict[str, str]:
        try:
            with open(self._path, "rb", opener=_open_to_read) as file:
                status = os.fstat(file.fileno())
                text = file.read(_BYTES_MAX)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise disk_failure(error, path=str(self._path)) from error
        if status.st_mode & 0o077 or not stat.S_ISREG(status.st_mode):
            mode = oct(stat.S_IMODE(status.st_mode))
            raise KeyFileOpen(file=str(self._path), mode=mode)
        return self._parse(text)

    def _parse(self, text: bytes) -> dict[str, str]:
        """The complaint names no place in the file: what stands there may be a key."""
        try:
            return msgspec.convert(tomllib.loads(text.decode()), dict[str, str])
        except (ValueError, msgspec.MsgspecError):
            pass
        raise SettingsUnreadable(file=str(self._path), problem="it is no list of keys")


class KeyringKeys:
    """Keys that the keyring of the desktop had for us, by the names of their providers.

    It is asked elsewhere, once: a keyring may wait for a person to unlock it, and we do not.
    """

    def __init__(self, entries: Mapping[str, str]) -> None:
        self._entries = entries

    def find(self, provider: Provider) -> str | None:
        """The provider's entry."""
        return self._entries.get(provider.name)


class Keys:
    """The keys of all providers, from the first source that has them."""

    def __init__(self, sources: Iterable[KeySource], *, file: Path) -> None:
        self._sources = tuple(sources)
        self._file = file  # where a person may put one
        self._found: tuple[str, ...] = ()

    def find(self, provider: Provider) -> ApiKey | None:
        """The key to send; None where a provider wants none."""
        found = (source.find(provider) for source in self._sources)
        value = next((key.strip() for key in found if key and key.strip()), None)
        if value is None and provider.variable:
            raise KeyMissing(
                provider=provider.name, variable=provider.variable, file=str(self._file)
            )
        if value is not None and not (value.isascii() and value.isprintable()):
            raise SettingsUnreadable(
                file=provider.variable or str(self._file),
                problem=f"the key of {provider.name} has letters that no key has",
            )
        if value is None:
            return None
        self._remember(value)
        return ApiKey(value)

    def has(self, provider: Provider) -> bool:
        """Whether a source has a key of this provider; a source that is refused has none."""
        for source in self._sources:
            with suppress(Failure):
                if (source.find(provider) or "").strip():
                    return True
        return False

    def look_for(self, providers: Iterable[Provider]) -> None:
        """Know all keys that there are; a source that is refused has none to tell."""
        for provider in providers:
            for source in self._sources:
                with suppress(Failure):
                    self._remember((source.find(provider) or "").strip())

    def known(self) -> tuple[str, ...]:
        """All keys that were found, for who takes them out of journals, logs and reports."""
        return self._found

    def _remember(self, key: str) -> None:
        if key and key not in self._found:
            self._found = (*self._found, key)


def without_keys(environment: Mapping[str, str], known: Iterable[str]) -> dict[str, str]:
    """An environment without the variables that hold a key, whatever they are called."""
    keys = frozenset(known)
    redactor = KnownRedactor(keys)
    return {
        name: value
        for name, value in environment.items()
        if value not in keys and redactor.text(value) == value
    }


def _open_to_read(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
