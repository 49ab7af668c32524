"""What a person and a program are shown, whole."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.pretending import BEGIN, END, turning
from tests.cli.running import holdfast

KEY = "sk-proj-" + "a1B2c3D4" * 8


def test_secrets_in_what_codex_does_are_not_shown(tmp_path: Path) -> None:
    codex = turning(
        tmp_path,
        BEGIN,
        {"run": f"curl -H 'Authorization: Bearer {KEY}'"},
        {"approve": "command", "command": f"export API_KEY={KEY}"},
        END,
    )
    done = holdfast("codex", "ask", "go", home=tmp_path, HOLDFAST_CODEX=str(codex), stdin=0)

    assert "$ curl -H 'Authorization: Bearer" in done.stderr
    assert "declined (no terminal to ask on): run export API_KEY=" in done.stderr
    assert KEY[8:40] not in done.stderr


def test_every_kind_of_approval_is_a_record(tmp_path: Path) -> None:
    codex = turning(
        tmp_path,
        BEGIN,
        {"approve": "fileChange"},
        {
            "ask": "item/permissions/requestApproval",
            "params": {
                "threadId": "$thread",
                "turnId": "$turn",
                "itemId": "i",
                "startedAtMs": 0,
                "environmentId": "local",
                "cwd": "/p",
                "permissions": {"network": True},
            },
        },
        {
            "ask": "item/tool/requestUserInput",
            "params": {
                "threadId": "$thread",
                "turnId": "$turn",
                "itemId": "i",
                "isBlocking": True,
                "questions": [{"id": "q", "header": "h", "question": "Which?"}],
            },
        },
        END,
    )
    done = holdfast(
        "codex", "ask", "--json", "go", home=tmp_path, HOLDFAST_CODEX=str(codex), stdin=0
    )
    records = [json.loads(line) for line in done.stdout.splitlines()]
    asked = [record["approval"] for record in records if record["type"] == "approval"]

    assert [each["kind"] for each in asked] == ["fileChange", "permissions", "input"]
    assert asked[1]["permissions"] == {"network": True}
    assert asked[2]["questions"] == [{"id": "q", "header": "h", "question": "Which?"}]
