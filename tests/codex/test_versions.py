"""Which version a server is, and what a message that cannot be read says about versions."""

from __future__ import annotations

import pytest

from holdfast.codex.versions import NEWEST, OLDEST, UNKNOWN, incompatible, version_of


@pytest.mark.parametrize(
    ("user_agent", "version"),
    [
        ("holdfast/0.166.0 (Debian 12.0.0; x86_64) unknown (holdfast; 0.1.0)", "0.166.0"),
        ("holdfast/0.170.0-alpha.3 (Mac OS 15)", "0.170.0-alpha.3"),
        ("codex_cli_rs/1.2.3", "1.2.3"),
        ("holdfast", UNKNOWN),
        ("two words/0.1.2", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_the_version_is_in_the_user_agent(user_agent: str, version: str) -> None:
    assert version_of(user_agent) == version


def test_a_failure_names_the_version_and_those_that_are_supported() -> None:
    message = incompatible("thread/start", "Thread lacks `id`", version="0.99.0").user_message

    assert all(each in message for each in ("0.99.0", OLDEST, NEWEST, "thread/start", "lacks `id`"))
