"""Headers, schemes and addresses give secrets away, and only secrets."""

from __future__ import annotations

import pytest

from holdfast.telemetry.redaction.redaction import Redactor


@pytest.mark.promise("T6")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer a.b-c1", "Authorization: Bearer [redacted:authorization]"),
        ("authorization: Basic eDp5 z", "authorization: Basic [redacted:authorization] z"),
        (
            'Proxy-Authorization: Digest username="u", response="abc"',
            "Proxy-Authorization: Digest [redacted:authorization]",
        ),
        ("curl -H 'x: Bearer abcdefg1' u", "curl -H 'x: Bearer [redacted:bearer]' u"),
        ("Basic dXNlcjpwYXNz next", "Basic [redacted:basic-auth] next"),
        ("Cookie: a=b; c=d\nnext", "Cookie: [redacted:cookie]\nnext"),
        ('("set-cookie", "sid=1; Path=/")', '("set-cookie", "[redacted:cookie]")'),
        ("redis://:pw@h:1/0", "redis://:[redacted:url-password]@h:1/0"),
        ("https://u:p@ss@h/x", "https://u:[redacted:url-password]@h/x"),
        ("?sig=abcdefghij%2Bklmnopqrst%3D&b", "?sig=[redacted:azure]&b"),
        (
            "https://hooks.slack.com/services/T1/B2/abc",
            "https://hooks.slack.com/services/[redacted:slack]",
        ),
        (
            "https://discord.com/api/webhooks/123456789/a-b_c",
            "https://discord.com/api/webhooks/123456789/[redacted:discord]",
        ),
    ],
)
def test_surroundings_give_a_secret_away(text: str, expected: str) -> None:
    assert Redactor().text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Basic understanding of authorization: everyone may read",
        "the bearer of this letter",
        "http://[::1]:8080/a@b",
        "https://example.org:443/path",
        "def seek(self, cookie, whence=0):",
        "sig=short",
    ],
)
def test_other_uses_of_the_same_words_stay(text: str) -> None:
    assert Redactor().text(text) == text
