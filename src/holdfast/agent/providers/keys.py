"""API keys of providers: sources, and protection against accidental disclosure."""

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
    """A key that does not appear in repr, copies or pickles."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the key, to be sent to its provider."""
        return self._value

    def __repr__(self) -> str:
        return "Key(***)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not written down")


class KeySource(Protocol):
    """A place that may have keys."""

    def find(self, provider: Provider) -> str | None:
        """Return the key of a provider, or None."""
        ...


class EnvironmentKeys:
    """Keys from environment variables."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def find(self, provider: Provider) -> str | None:
        return self._environment.get(provider.variable) if provider.variable else None


class FileKeys:
    """Keys from a file with mode 0600: `openai = "sk-…"`, one per line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def find(self, provider: Provider) -> str | None:
        """Return the provider's key; raises KeyFileOpen if others can read the file."""
        return self._read().get(provider.name)

    def check(self) -> None:
        """Raise if the file is not usable; a missing file is fine."""
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
        """Parse the file; errors quote nothing from it, since it may be a key."""
        try:
            return msgspec.convert(tomllib.loads(text.decode()), dict[str, str])
        except (ValueError, msgspec.MsgspecError):
            pass
        raise SettingsUnreadable(file=str(self._path), problem="it is no list of keys")


class KeyringKeys:
    """Keys from the desktop's keyring, by provider.

    Read once elsewhere: a keyring may block until the person unlocks it.
    """

    def __init__(self, entries: Mapping[str, str]) -> None:
        self._entries = entries

    def find(self, provider: Provider) -> str | None:
        return self._entries.get(provider.name)


class Keys:
    """The keys of all providers, from the first source that has one."""

    def __init__(self, sources: Iterable[KeySource], *, file: Path) -> None:
        self._sources = tuple(sources)
        self._file = file  # named in the failure as the place to put a key
        self._found: tuple[str, ...] = ()

    def find(self, provider: Provider) -> ApiKey | None:
        """Return the key; None if the provider needs none. Raises KeyMissing."""
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
        """Whether a source has a key for the provider; unusable sources have none."""
        for source in self._sources:
            with suppress(Failure):
                if (source.find(provider) or "").strip():
                    return True
        return False

    def look_for(self, providers: Iterable[Provider]) -> None:
        """Find all keys, so that they can be redacted; unusable sources are skipped."""
        for provider in providers:
            for source in self._sources:
                with suppress(Failure):
                    self._remember((source.find(provider) or "").strip())

    def known(self) -> tuple[str, ...]:
        """Return all keys found so far, for redaction."""
        return self._found

    def _remember(self, key: str) -> None:
        if key and key not in self._found:
            self._found = (*self._found, key)


def without_keys(environment: Mapping[str, str], known: Iterable[str]) -> dict[str, str]:
    """Return the environment without variables that contain a key, whatever their name."""
    keys = frozenset(known)
    redactor = KnownRedactor(keys)
    return {
        name: value
        for name, value in environment.items()
        if value not in keys and redactor.text(value) == value
    }


def _open_to_read(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
