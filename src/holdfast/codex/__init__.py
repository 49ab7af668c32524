"""An SDK for the Codex app-server that survives everything the server does."""

from holdfast.codex.app_server import AppServer
from holdfast.codex.model import (
    Answer,
    Approval,
    CommandApproval,
    Decision,
    Event,
    EventsDropped,
    FileChangeApproval,
    Health,
    Hook,
    InputApproval,
    PermissionsApproval,
    Reply,
    State,
    UnknownEvent,
)
from holdfast.codex.thread import Thread

__all__ = [
    "Answer",
    "AppServer",
    "Approval",
    "CommandApproval",
    "Decision",
    "Event",
    "EventsDropped",
    "FileChangeApproval",
    "Health",
    "Hook",
    "InputApproval",
    "PermissionsApproval",
    "Reply",
    "State",
    "Thread",
    "UnknownEvent",
]
