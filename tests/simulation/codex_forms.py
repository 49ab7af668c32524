"""The records that a simulated app-server sends, complete enough to be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]  # Any: this is a wire

INITIALIZED = {
    "userAgent": "simulated/0.166.0",
    "codexHome": "/nowhere",
    "platformFamily": "unix",
    "platformOs": "linux",
}
CAUSES = ("usageLimitExceeded", "serverOverloaded", "other", "contextWindowExceeded", None)


def thread(id_: str, newest: Sequence[Json] = ()) -> Json:
    """The answer to starting a thread, or to resuming it with a page of its newest turns."""
    return {
        "approvalPolicy": "on-request",
        "approvalsReviewer": "user",
        "cwd": "/nowhere",
        "model": "simulated",
        "modelProvider": "simulated",
        "sandbox": {"type": "dangerFullAccess"},
        "thread": {
            "cliVersion": "0.166.0",
            "createdAt": 0,
            "cwd": "/nowhere",
            "ephemeral": False,
            "id": id_,
            "modelProvider": "simulated",
            "preview": "",
            "projectId": None,
            "sessionId": id_,
            "source": "appServer",
            "status": {"type": "idle"},
            "turns": [],
            "updatedAt": 0,
        },
        "initialTurnsPage": {"data": list(newest)},
    }


def turn(id_: str, status: str, failed_of: Json | None = None) -> Json:
    """A turn, without its items."""
    return {"id": id_, "items": [], "status": status, "error": failed_of}


def error(cause: str | Json | None) -> Json:
    """What a turn failed of, or retries after."""
    return {"message": "it went wrong", "codexErrorInfo": cause, "additionalDetails": None}


def message(id_: str, text: str) -> Json:
    """What the model says."""
    return {"type": "agentMessage", "id": id_, "text": text}


def command(id_: str) -> Json:
    """A command that wants to be run."""
    item = {"type": "commandExecution", "command": f"touch {id_}", "commandActions": []}
    return item | {"cwd": "/nowhere", "id": id_, "status": "inProgress"}


def file_change(id_: str) -> Json:
    """A change of a file that wants to be made."""
    change = {"path": f"/{id_}", "kind": {"type": "add"}, "diff": ""}
    return {"type": "fileChange", "id": id_, "changes": [change], "status": "inProgress"}


ASKING = (
    (command, "item/commandExecution/requestApproval"),
    (file_change, "item/fileChange/requestApproval"),
)
