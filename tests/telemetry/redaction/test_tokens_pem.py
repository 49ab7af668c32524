"""Private keys in armour are hidden whole, in whatever they are wrapped."""

from __future__ import annotations

import json

import pytest

from holdfast.telemetry.redaction.tokens import scan_pem

LINES = "\n".join(["MIIEpAIBAAKCAQEA" * 4] * 3 + ["c2hvcnQ="])
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{LINES}\n-----END RSA PRIVATE KEY-----"


@pytest.mark.promise("T6")
@pytest.mark.parametrize(
    "text",
    [
        KEY,
        KEY.replace("RSA ", ""),
        KEY.replace("RSA", "OPENSSH"),
        KEY.replace("RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"),
        KEY.replace("\n", "\r\n"),
        KEY.replace("\n", "\n    "),
        KEY.replace("\n", "\\n"),
        KEY.replace("\n", "\\\\n"),
        json.dumps(KEY)[1:-1],
        KEY.replace("\n", '\\n"\n  "'),
        KEY.replace("KEY-----\nMII", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: A,0F\n\nMII"),
        KEY.replace("\n-----END", "-----END"),
        KEY.replace("AQEA\nMII", "AQEA...AIBAAKCAQEAMIIEMII"),
        KEY.replace("AQEA\nMII", "AQEA...AIB\nMII"),
    ],
)
def test_a_key_is_hidden_however_it_is_wrapped(text: str) -> None:
    assert scan_pem(f"a {text} z", 0, True).out == "a [redacted:private-key] z"


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN CERTIFICATE-----\nMIIEpAIBAAKCAQEAMIIE\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIEpAIBAAKCAQEAMIIE\n-----END PUBLIC KEY-----",
        'if "-----BEGIN PRIVATE KEY-----" in text:',
        "----------",
    ],
)
def test_other_armour_stays(text: str) -> None:
    assert scan_pem(text, 0, True).out == text


def test_a_block_is_held_until_it_is_complete() -> None:
    assert scan_pem(f"a {KEY[:100]}", 0, False).out == "a "
    assert scan_pem("a ----", 0, False).out == "a "
