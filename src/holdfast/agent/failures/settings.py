"""What can be wrong with what the person has settled for the agent."""

from __future__ import annotations

from holdfast.failures import Action, Failure, Kind


class KeyMissing(
    Failure,
    code="MODEL_KEY_MISSING",
    kind=Kind.CREDENTIALS,
    title="No key for the provider",
    user_message="There is no key for {provider}. Enter it: holdfast login {provider}. Or set "
    "{variable}, or put it into {file}.",
    actions=(Action.OPEN_SETTINGS, Action.SWITCH_MODEL),
):
    """A provider wants a key, and nobody has given us one."""

    provider: str
    variable: str
    file: str


class KeyUnusable(
    Failure,
    code="MODEL_KEY_UNUSABLE",
    kind=Kind.INVALID,
    title="The key cannot be used",
    user_message="No key of {provider} was kept: {reason}.",
    phase="login",
):
    """What was entered as a key is not one."""

    provider: str
    reason: str


class KeyFileOpen(
    Failure,
    code="MODEL_KEY_FILE_OPEN",
    kind=Kind.MISCONFIGURED,
    title="Others can read the keys",
    user_message="{file} may be read by others than you, so no key is taken from it. "
    "Run: chmod 600 {file}",
    actions=(Action.OPEN_SETTINGS,),
):
    """The file with the keys is not ours alone."""

    file: str
    mode: str


class SettingsUnreadable(
    Failure,
    code="MODEL_SETTINGS_INVALID",
    kind=Kind.MISCONFIGURED,
    title="The provider settings make no sense",
    user_message="{file}: {problem}.",
    actions=(Action.OPEN_SETTINGS,),
):
    """What the person wrote about providers or keys cannot be used."""

    file: str
    problem: str


class ProviderUnknown(
    Failure,
    code="MODEL_PROVIDER_UNKNOWN",
    kind=Kind.MISSING,
    title="No such provider",
    user_message="There is no provider {provider}; there are {known}.",
    actions=(Action.SWITCH_MODEL, Action.OPEN_SETTINGS),
):
    """Nobody has said where a provider of that name is."""

    provider: str
    known: str


class ScriptInvalid(
    Failure,
    code="SCRIPT_INVALID",
    kind=Kind.MISCONFIGURED,
    title="The script makes no sense",
    user_message="{name}: {problem}.",
):
    """The script of a scripted model cannot be read."""

    name: str
    problem: str


class McpSettingsUnfit(
    Failure,
    code="MCP_SETTINGS_UNFIT",
    kind=Kind.MISCONFIGURED,
    title="The MCP settings are wrong",
    user_message="{file} cannot be used: {reason}. No MCP server of it is started.",
    actions=(Action.OPEN_SETTINGS,),
):
    """A file that names MCP servers cannot be read as one."""

    file: str
    reason: str
