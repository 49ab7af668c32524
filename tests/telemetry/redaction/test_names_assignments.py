"""What is assigned to a name is found in every form that people write."""

from __future__ import annotations

import pytest

from holdfast.telemetry.redaction.names import name_before
from holdfast.telemetry.redaction.redaction import Redactor

HIDDEN = "[redacted:secret]"


@pytest.mark.parametrize(
    "text",
    [
        "DB_PASSWORD=§",
        "export ACME_TOKEN=§ OTHER=1",
        'ACME_TOKEN="§"',
        "password: §",
        "  secret_key: '§'  # note",
        'auth_token = "§"',
        "token := '§'",
        ":password => '§'",
        '{"api_key": "§", "n": 1}',
        '{\\"api_key\\": \\"§\\"}',
        'config["client_secret"] = "§"',
        "password=b'§'",
        "?access_token=§&next=1",
        "X-Api-Key: §",
        "x-auth-token: §",
        "AccountKey=§;EndpointSuffix=core",
        "//registry.example/:_authToken=§",
        "--password § --quiet",
        "('run', '--password', '§')",
        '["run","--password","§"]',
        "--api-token=§",
        "<password>§</password>",
        "Secret access key: §",
        "user=x password=§ host=y",
    ],
)
@pytest.mark.promise("T6")
def test_an_assignment_is_hidden(text: str) -> None:
    secret = "q7Zk2mPx9LtV4wRb"

    assert Redactor().text(text.replace("§", secret)) == text.replace("§", HIDDEN)


@pytest.mark.parametrize(
    ("text", "name"),
    [("a.b_c-", "a.b_c-"), ("x = DB_", "DB_"), ('{"', ""), ("y" * 99, "y" * 48)],
)
def test_the_name_before_a_word_is_read_back(text: str, name: str) -> None:
    assert name_before(text + "key", len(text)) == name
