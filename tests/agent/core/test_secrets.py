"""What holds a secret does not reach a process of an agent."""

from __future__ import annotations

import pytest

from holdfast.agent.core.secrets import without_secrets


@pytest.mark.promise("T6")
@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "PGPASSWORD_PASSWORD",
        "npm_token",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GIVEN_BY_NAME",
    ],
)
def test_secrets_are_left_out(name: str) -> None:
    assert without_secrets({name: "x", "PATH": "/bin"}, ["GIVEN_BY_NAME"]) == {"PATH": "/bin"}


def test_the_rest_stays() -> None:
    plain = {"PATH": "/bin", "KEYBOARD": "de", "TOKENIZERS_PARALLELISM": "1", "HOME": "/root"}

    assert without_secrets(plain) == plain
