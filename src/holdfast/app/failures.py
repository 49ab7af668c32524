"""Failures of settings, sessions and the local server."""

from __future__ import annotations

from holdfast.failures import Action, Failure, Kind, Recovery


class SettingInvalid(
    Failure,
    code="CONFIG_SETTING_INVALID",
    kind=Kind.MISCONFIGURED,
    title="A setting is not valid",
    user_message="{variable} is set to {value!r}, but must be {allowed}. Change it or unset it.",
    phase="settings",
    actions=(Action.OPEN_SETTINGS,),
):
    """An environment variable or setting has a value that is not allowed."""

    variable: str
    value: str
    allowed: str


class SessionMissing(
    Failure,
    code="SESSION_MISSING",
    kind=Kind.MISSING,
    title="No such session",
    user_message="Session {session} does not exist; `holdfast sessions list` lists all.",
):
    """No session matches the given id."""

    session: str


class SessionAmbiguous(
    Failure,
    code="SESSION_AMBIGUOUS",
    kind=Kind.INVALID,
    title="The session id is ambiguous",
    user_message="{count} sessions begin with {session}. Give more characters of the id.",
):
    """The given beginning of an id matches several sessions."""

    session: str
    count: int


class SessionReadOnly(
    Failure,
    code="SESSION_READ_ONLY",
    kind=Kind.MISSING,
    title="The session is read-only",
    user_message="{session} was imported from {tool}, and there is no runner for {tool} yet. "
    "Read it with holdfast sessions show {session}, or begin a session with another runner.",
    recovery=Recovery.USE_ALTERNATIVE,
    actions=(Action.SWITCH_RUNNER,),
):
    """An imported session cannot continue, because its tool has no runner."""

    session: str
    tool: str


class HistoryMissing(
    Failure,
    code="SESSION_HISTORY_MISSING",
    kind=Kind.MISSING,
    title="No such conversation",
    user_message="{tool} has no conversation {conversation} about {project}. The command "
    "holdfast sessions import {tool} lists its conversations.",
):
    """The tool has no conversation of this id about the project."""

    tool: str
    conversation: str
    project: str


class ConfigKeyUnknown(
    Failure,
    code="CONFIG_KEY_UNKNOWN",
    kind=Kind.MISCONFIGURED,
    title="No such setting",
    user_message="{file} has a setting {key}, which does not exist. Did you mean {nearest}?",
    phase="settings",
    actions=(Action.OPEN_SETTINGS,),
):
    """A configuration file has an unknown key."""

    key: str
    file: str
    nearest: str


class ConfigKeyRefused(
    Failure,
    code="CONFIG_KEY_REFUSED",
    kind=Kind.MISCONFIGURED,
    title="A project may not set this",
    user_message="{file} has a setting {key}, but a project may only set budgets. Put it into "
    "your own config.toml.",
    phase="settings",
    actions=(Action.OPEN_SETTINGS,),
):
    """A project file sets a key that only the user's own config.toml may set."""

    key: str
    file: str


class ConfigUnreadable(
    Failure,
    code="CONFIG_FILE_UNREADABLE",
    kind=Kind.MISCONFIGURED,
    title="The settings are not readable",
    user_message="{file} cannot be read: {problem}.",
    phase="settings",
    actions=(Action.OPEN_SETTINGS,),
):
    """A configuration file is not valid TOML, is too long, or is not a regular file."""

    file: str
    problem: str


class TrustUnconfirmed(
    Failure,
    code="CONFIG_TRUST_UNCONFIRMED",
    kind=Kind.NEEDS_APPROVAL,
    title="Nothing was trusted",
    user_message="Trusting {file} was not confirmed. Answer yes when asked, or add --yes.",
    phase="settings",
    actions=(Action.GIVE_CONSENT, Action.CANCEL),
):
    """`holdfast trust` was not confirmed."""

    file: str


class SessionForkBusy(
    Failure,
    code="SESSION_FORK_BUSY",
    kind=Kind.BUSY,
    title="A turn is running",
    user_message="{session} has a running turn. Fork it when the turn is over, or end the turn.",
    actions=(Action.WAIT, Action.CANCEL),
):
    """A session cannot be forked while a turn runs or waits."""

    session: str


class SessionOptionsInvalid(
    Failure,
    code="SESSION_OPTIONS_INVALID",
    kind=Kind.INVALID,
    title="The options do not fit",
    user_message="Nothing was begun: {problem}.",
    phase="begin",
):
    """The runner of a new session does not work with its options."""

    problem: str


class LocalServerUnavailable(
    Failure,
    code="CLI_LOCAL_SERVER_UNAVAILABLE",
    kind=Kind.UNAVAILABLE,
    title="The local exec-server does not start",
    user_message="Nothing was run, because the local exec-server did not start: {reason}",
    phase="exec.start",
    actions=(Action.RETRY, Action.VIEW_REPORT),
):
    """The local exec-server was started and does not answer."""

    reason: str


class LocalServerStopped(
    Failure,
    code="CLI_LOCAL_SERVER_STOPPED",
    kind=Kind.CANCELLED,
    title="The local exec-server was stopped",
    user_message="The local exec-server and its processes were ended by holdfast stop --all "
    "({user}, at {at}). Output until then is kept: holdfast ps lists it.",
    phase="exec.connect",
    actions=(Action.RETRY,),
):
    """The local server was stopped on purpose, so an earlier client does not restart it."""

    user: str
    at: str
