"""What can go wrong before the program has begun its work."""

from __future__ import annotations

from holdfast.failures import Action, Failure, Kind, Recovery


class SettingInvalid(
    Failure,
    code="CONFIG_SETTING_INVALID",
    kind=Kind.MISCONFIGURED,
    title="A setting is wrong",
    user_message="{variable} is set to {value!r}, but must be {allowed}. Change it or unset it.",
    phase="settings",
    actions=(Action.OPEN_SETTINGS,),
):
    """An environment variable holds a value that has no meaning."""

    variable: str
    value: str
    allowed: str


class SessionMissing(
    Failure,
    code="SESSION_MISSING",
    kind=Kind.MISSING,
    title="No such session",
    user_message="There is no session {session}; `holdfast sessions list` shows all.",
):
    """No session has the id that was given."""

    session: str


class SessionAmbiguous(
    Failure,
    code="SESSION_AMBIGUOUS",
    kind=Kind.INVALID,
    title="Which session?",
    user_message="{count} sessions begin with {session}. Say more of the id.",
):
    """The beginning of an id that was given fits several sessions."""

    session: str
    count: int


class SessionReadOnly(
    Failure,
    code="SESSION_READ_ONLY",
    kind=Kind.MISSING,
    title="It can only be read",
    user_message="{session} was taken over from {tool}, and no runner for {tool} exists yet. "
    "Read it with holdfast sessions show {session}, or begin a session with another runner.",
    recovery=Recovery.USE_ALTERNATIVE,
    actions=(Action.SWITCH_RUNNER,),
):
    """A session is to go on whose tool we have no runner for."""

    session: str
    tool: str


class HistoryMissing(
    Failure,
    code="SESSION_HISTORY_MISSING",
    kind=Kind.MISSING,
    title="No such conversation",
    user_message="{tool} keeps no conversation {conversation} about {project}. The command "
    "holdfast sessions import {tool} lists those that it keeps.",
):
    """A conversation is to be taken over that its tool does not have, or not about the project."""

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
    """A file settles something that does not exist."""

    key: str
    file: str
    nearest: str


class ConfigKeyRefused(
    Failure,
    code="CONFIG_KEY_REFUSED",
    kind=Kind.MISCONFIGURED,
    title="Not for a project to settle",
    user_message="{file} has a setting {key}, but a project may only set budgets. Put it into "
    "your own config.toml.",
    phase="settings",
    actions=(Action.OPEN_SETTINGS,),
):
    """A project's file settles what only its user may."""

    key: str
    file: str


class ConfigUnreadable(
    Failure,
    code="CONFIG_FILE_UNREADABLE",
    kind=Kind.MISCONFIGURED,
    title="The settings cannot be read",
    user_message="{file} cannot be read: {problem}.",
    phase="settings",
    actions=(Action.OPEN_SETTINGS,),
):
    """A file of settings is no TOML, too long, or no file."""

    file: str
    problem: str


class TrustUnconfirmed(
    Failure,
    code="CONFIG_TRUST_UNCONFIRMED",
    kind=Kind.NEEDS_APPROVAL,
    title="Nothing was trusted",
    user_message="Nobody said that {file} may count. Say yes when asked, or add --yes.",
    phase="settings",
    actions=(Action.GIVE_CONSENT, Action.CANCEL),
):
    """A project's settings were to be trusted, and no person agreed."""

    file: str


class SessionForkBusy(
    Failure,
    code="SESSION_FORK_BUSY",
    kind=Kind.BUSY,
    title="A turn is running",
    user_message="{session} is at work. Fork it when its turn is over, or end the turn first.",
    actions=(Action.WAIT, Action.CANCEL),
):
    """A session is to be forked in which something runs or waits."""

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
    user_message="Nothing was run, because no exec-server could be started here: {reason}",
    phase="exec.start",
    actions=(Action.RETRY, Action.VIEW_REPORT),
):
    """The server of this machine was to be started, and does not answer."""

    reason: str


class LocalServerStopped(
    Failure,
    code="CLI_LOCAL_SERVER_STOPPED",
    kind=Kind.CANCELLED,
    title="Everything was ended",
    user_message="The local exec-server was ended with all that ran there, by holdfast stop --all "
    "({user}, at {at}). What was written until then is kept: holdfast ps lists it.",
    phase="exec.connect",
    actions=(Action.RETRY,),
):
    """The server that we worked with was ended on purpose, so it is not started again for us."""

    user: str
    at: str
