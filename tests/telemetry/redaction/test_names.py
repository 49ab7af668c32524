"""Which names promise a secret, and which values are one."""

from __future__ import annotations

import pytest

from holdfast.telemetry.redaction.names import Assigned, Form, Weight, is_hidden, is_secret, weigh


@pytest.mark.parametrize(
    ("name", "weight"),
    [
        ("password", Weight.HARD),
        ("DB_PASSWORD_MAIN", Weight.HARD),
        ("clientSecret", Weight.HARD),
        ("api_key", Weight.FIRM),
        ("apiKey", Weight.FIRM),
        ("GH_TOKEN_2", Weight.FIRM),
        ("x-auth-token", Weight.FIRM),
        ("aws_secret_access_key", Weight.FIRM),
        ("ACME_API_KEY_EAST", Weight.FIRM),
        ("tokens", Weight.FAINT),
        ("vendor_key", Weight.FAINT),
        ("max_tokens", Weight.NONE),
        ("next_page_token", Weight.NONE),
        ("primary_key", Weight.NONE),
        ("public_key", Weight.NONE),
        ("PASSWORD_FILE", Weight.NONE),
        ("TOKEN_URL", Weight.NONE),
        ("keyboard", Weight.NONE),
        ("tokenizer", Weight.NONE),
        ("", Weight.NONE),
    ],
)
def test_a_name_weighs(name: str, weight: Weight) -> None:
    assert weigh(name) is weight


@pytest.mark.parametrize(
    ("assigned", "expected"),
    [
        (Assigned("password", "hunter2", Form.BARE), True),
        (Assigned("password", "postgres", Form.BARE), True),
        (Assigned("password", "must", Form.BARE, " b"), False),
        (Assigned("password", "getpass.getpass", Form.BARE, "()"), False),
        (Assigned("password", "user_password", Form.BARE), False),
        (Assigned("password", "correct horse", Form.QUOTED), True),
        (Assigned("password", "", Form.QUOTED), False),
        (Assigned("PASSWORD", "password", Form.QUOTED), False),
        (Assigned("password", "${PASSWORD}", Form.SHELL), False),
        (Assigned("password", "[redacted:known]", Form.QUOTED), False),
        (Assigned("password", "[redacted:known]x", Form.QUOTED), True),
        (Assigned("PWD", "/home/ann/project", Form.SHELL), False),
        (Assigned("OLDPWD", "/", Form.QUOTED), False),
        (Assigned("PWD", "hunter2", Form.SHELL), True),
        (Assigned("DB_PWD", "/hunter2", Form.SHELL), True),
        (Assigned("token", "identifier", Form.QUOTED), False),
        (Assigned("token", "4096", Form.BARE), False),
        (Assigned("token", "abc123def", Form.BARE), True),
        (Assigned("token", "/run/token1", Form.QUOTED), False),
        (Assigned("vendor_key", "a1b2c3d4e5f6g7h8", Form.QUOTED), True),
        (Assigned("vendor_key", "0123456789abcdef0123", Form.QUOTED), False),
        (Assigned("vendor_key", "name", Form.QUOTED), False),
        (Assigned("colour", "a1b2c3d4e5f6g7h8", Form.QUOTED), False),
    ],
)
def test_a_value_is_judged_by_its_name_and_form(assigned: Assigned, expected: bool) -> None:
    assert is_secret(assigned) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [("[redacted:aws]", True), ("[redacted:private-key]\\n", True), ("x[redacted:aws]", False)],
)
def test_what_is_hidden_already_is_known(value: str, expected: bool) -> None:
    assert is_hidden(value) is expected
