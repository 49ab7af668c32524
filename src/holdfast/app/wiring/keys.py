"""Keys of providers, and the secret values that redaction must remove."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from holdfast.agent import EnvironmentKeys, FileKeys, KeyringKeys, Keys, Provider, read_providers
from holdfast.app.failures import ConfigUnreadable
from holdfast.app.settings import Settings, environment
from holdfast.telemetry import ValueRedactor
from holdfast.world import disk_failure


def own_text(path: Path) -> str:
    """The text of a configuration file; empty if it does not exist.

    Raises ConfigUnreadable if it is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise disk_failure(error, path=str(path)) from error
    except UnicodeDecodeError as error:
        raise ConfigUnreadable(file=str(path), problem="it is not UTF-8 text") from error


def providers_of(settings: Settings) -> dict[str, Provider]:
    """Built-in providers and those of providers.toml, by name."""
    file = settings.config / "providers.toml"
    return read_providers(str(file), own_text(file))


def key_file(settings: Settings) -> Path:
    """The file that `holdfast login` writes keys to."""
    return settings.config / "keys.toml"


def keys_of(settings: Settings, ring: Mapping[str, str]) -> Keys:
    """Keys from the environment, then from keyring entries, then from the key file."""
    file = key_file(settings)
    return Keys((EnvironmentKeys(environment()), KeyringKeys(ring), FileKeys(file)), file=file)


def known_keys(settings: Settings) -> tuple[str, ...]:
    """The keys of all providers in the environment and the key file; the keyring is not asked."""
    keys = keys_of(settings, {})
    keys.look_for(providers_of(settings).values())
    return keys.known()


def known_secrets(settings: Settings) -> tuple[str, ...]:
    """Every secret value known here without asking the keyring.

    Those are the keys of providers and the values of variables whose names look secret.
    """
    variables = environment()
    hidden = ValueRedactor(str).mapping(variables)
    named = (value for name, value in variables.items() if hidden.get(name) != value)
    return (*known_keys(settings), *named)
