"""What can go wrong before the program has begun its work."""

from __future__ import annotations

from holdfast.failures import Action, Failure, Kind


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
