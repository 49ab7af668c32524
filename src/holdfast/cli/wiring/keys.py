"""Where the keys of providers are, and all secrets that can be known by their value."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from holdfast.agent import EnvironmentKeys, FileKeys, KeyringKeys, Keys, Provider, read_providers
from holdfast.app.failures import ConfigUnreadable
from holdfast.app.settings import Settings, environment
from holdfast.telemetry import ValueRedactor
from holdfast.world import disk_failure

# Read what a person has written in a file of their own.


def own_text(path: Path) -> str:
    """What the file says; nothing where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise disk_failure(error, path=str(path)) from error
    except UnicodeDecodeError as error:
        raise ConfigUnreadable(file=str(path), problem="it is no text") from error


def providers_of(settings: Settings) -> dict[str, Provider]:
    """The providers that there are, by name."""
    file = settings.config / "providers.toml"
    return read_providers(str(file), own_text(file))


def key_file(settings: Settings) -> Path:
    """Where `holdfast login` keeps keys."""
    return settings.config / "keys.toml"


def keys_of(settings: Settings, ring: Mapping[str, str]) -> Keys:
    """Keys from the environment, from what the keyring had, and from a file of the person's."""
    file = key_file(settings)
    return Keys((EnvironmentKeys(environment()), KeyringKeys(ring), FileKeys(file)), file=file)


def known_keys(settings: Settings) -> tuple[str, ...]:
    """The keys of all providers that can be known here without asking anybody."""
    keys = keys_of(settings, {})
    keys.look_for(providers_of(settings).values())
    return keys.known()


def known_secrets(settings: Settings) -> tuple[str, ...]:
    """Every secret that can be known here by its value without asking anybody.

    Those are the keys of providers, and whatever a variable holds that is called like a secret.
    """
    variables = environment()
    hidden = ValueRedactor(str).mapping(variables)
    named = (value for name, value in variables.items() if hidden.get(name) != value)
    return (*known_keys(settings), *named)
