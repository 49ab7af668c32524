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
