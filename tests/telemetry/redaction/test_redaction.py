"""No secret of any family survives, whole or in chunks, and ordinary text is left alone."""

from __future__ import annotations

import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.telemetry.redaction.redaction import Redactor
from holdfast.telemetry.testing import canaries

KNOWN = ("correct horse battery", 'quo"ted\nsecret/+', "pässwörd-größe")
REDACTOR = Redactor(KNOWN)
HELD_LONGEST = 16_384

# What may stand directly before and after a key: text, quotes, and what encoders leave there.
BEFORE = (
    " ",
    "\n",
    '"',
    "'",
    "(",
    "=",
    ":",
    ",",
    "\\n",
    "\\t",
    "%3D",
    "\x1b[32m",
    "é",
    "/",
    "\t",
)
AFTER = (" ", "\n", '"', "'", ")", ",", ";", "\\n", "%26", "\x1b[0m", "é", "<", "\r\n")
HARMLESS = (
    "The token bucket refills; pass the key to the next page. Passwords are hashed.",
    "def authenticate(token: str, *, api_key: str | None = None) -> Credentials:",
    "password = getpass.getpass()",
    "self.token = token",
    "client = Client(api_key=settings.api_key, secret=config.secret)",
    "password: str\nsecret: SecretStr = Field(default=None)\ntoken: Optional[str]",
    "const { password, token } = req.body; let key = event.key;",
    "Password: must be at least twelve characters long",
    '{"max_tokens": 4096, "input_tokens": 1200, "token_type": "bearer", "key": "value"}',
    "usage: total_tokens=18234 cached_tokens=17000",
    "commit 898e1c60f5b1d2c3a4958677a0b1c2d3e4f50617",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "id=6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    "/usr/lib/python3.11/site-packages/holdfast/telemetry/core/redaction.py:42",
    "https://example.org/a/b?page=2&sort_key=name#part and git@github.com:owner/name.git",
    "task-management-and-risk-assessment-service-for-kubernetes-clusters",
    "if not os.path.exists(PRIVATE_KEY_PATH): raise KeyError('missing key')",
    "-----BEGIN CERTIFICATE-----\nMIIBkTCB+wIJAKHHIG\n-----END CERTIFICATE-----",
    'if "-----BEGIN PRIVATE KEY-----" in text:\n    return True',
    "basic understanding of bearer bonds; cookie: a small cake; authorization: who may do what",
    "PASSWORD=${DB_PASSWORD} TOKEN=$TOKEN API_KEY=<your key> SECRET=***",
    "secrets:\n  - name: app\n    key: password\n",
    "for key, value in tokens.items(): print(key, '=>', value)",
    "primary_key=True, foreign_key='user.id', cache_key=f'{a}:{b}', idempotency_key=request.id",
    "dGhpcyBpcyBqdXN0IHNvbWUgYmFzZTY0IHRleHQgd2l0aG91dCBzZWNyZXRz",
    "2026-11-15T09:08:38.123456Z INFO rpc request.stop method=item/updated duration=0.25",
)


def in_chunks(text: str, cuts: list[int]) -> str:
    stream = REDACTOR.stream()
    bounds = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    parts = [stream.feed(text[a:b]) for a, b in pairwise(bounds)]
    return "".join([*parts, stream.flush()])


CANARIES = st.sampled_from([canary for seed in range(20) for canary in canaries(seed)])
PROSE = st.one_of(
    st.sampled_from(HARMLESS),
    st.text(max_size=40),
    st.text("ab =:\"'\\\n-_/.[](){}%é", max_size=30),
)
CUTS = st.lists(st.integers(0, 1_000_000), max_size=12)


@pytest.mark.promise("T6")
def test_no_canary_survives_in_any_surrounding() -> None:
    survivors = [
        (family, before, after)
        for seed in range(2)
        for family, text, secret in canaries(seed)
        for before in BEFORE
        for after in AFTER
        if secret in REDACTOR.text(f"x{before}{text}{after}y")
    ]

    assert survivors == []


def test_there_are_canaries_of_many_families() -> None:
    assert len({family for family, _, _ in canaries(0)}) >= 40


@pytest.mark.promise("T6")
def test_every_cut_in_two_hides_as_much_as_none() -> None:
    for _, text, _ in canaries(3):
        text = f"begin {text}\nend"
        whole = REDACTOR.text(text)
        for cut in range(len(text) + 1):
            assert in_chunks(text, [cut]) == whole


@pytest.mark.promise("T6")
@given(CANARIES, PROSE, PROSE, st.sampled_from(BEFORE), st.sampled_from(AFTER), CUTS)
@settings(max_examples=300, deadline=None)
def test_no_canary_survives_any_split(
    canary: tuple[str, str, str], head: str, tail: str, before: str, after: str, cuts: list[int]
) -> None:
    _, secret_text, secret = canary
    text = head + before + secret_text + after + tail

    assert secret not in in_chunks(text, cuts)


PIECES = st.one_of(
    PROSE,
    CANARIES.map(lambda canary: canary[1]),
    st.sampled_from(
        (
            *("password", "token", "KEY=", ": ", "=", '"', "'", "\\", "\n", "\\n", "-----"),
            *("://u:p@", "Bearer ", "Authorization: ", "Cookie: a=", "--token ", "sig=", "eyJ"),
            *("-----BEGIN RSA PRIVATE KEY-----\n", "[redacted:", "secret]", "sk-ant-"),
            *(KNOWN[0], "correct horse"),
        )
    ),
    st.builds(
        lambda a, n: a * n, st.sampled_from(["a1", "-", "x_", "A/", " "]), st.integers(0, 9000)
    ),
)


@given(st.lists(PIECES, max_size=12).map("".join), CUTS)
@settings(max_examples=400, deadline=None)
def test_chunks_come_out_as_the_whole_does(text: str, cuts: list[int]) -> None:
    assert in_chunks(text, cuts) == REDACTOR.text(text)


@given(st.lists(st.one_of(PROSE, CANARIES.map(lambda canary: f" {canary[1]} ")), max_size=6))
@settings(max_examples=200, deadline=None)
def test_what_is_redacted_stays_as_it_is(parts: list[str]) -> None:
    once = REDACTOR.text("\n".join(parts))

    assert REDACTOR.text(once) == once


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert REDACTOR.text(text) == text


def test_our_own_source_is_left_alone() -> None:
    """Code about secrets is the hardest ordinary text there is."""
    touched = [
        line
        for path in sorted(Path("src/holdfast").rglob("*.py"))
        if "telemetry" not in path.parts  # where secrets are described on purpose
        for line in REDACTOR.text(path.read_text()).splitlines()
        if "[redacted:" in line and line not in path.read_text()
    ]

    assert touched == []


@pytest.mark.promise("T6")
@pytest.mark.parametrize("value", KNOWN)
def test_a_known_value_is_hidden_however_it_is_written(value: str) -> None:
    encoders = (
        "import sys,json;print(json.dumps(sys.argv[1]))",
        "import sys,json;print(json.dumps(json.dumps(sys.argv[1])))",
        "import sys,json;print(json.dumps(sys.argv[1],ensure_ascii=False))",
        "import sys,urllib.parse as u;print(u.quote(sys.argv[1],safe=''))",
        "import sys,urllib.parse as u;print(u.urlencode({'a':sys.argv[1]}))",
        "import sys,base64 as b;print(b.b64encode(sys.argv[1].encode()).decode())",
        "import sys,base64 as b;print(b.b64encode(b'u:'+sys.argv[1].encode()+b'!').decode())",
        "import sys,base64 as b;print(b.urlsafe_b64encode(b'xy'+sys.argv[1].encode()).decode())",
        "import sys;print(sys.argv[1])",
    )
    for encoder in encoders:
        command = ["python3", "-X", "utf8", "-c", encoder, value]
        written = subprocess.run(command, check=True, capture_output=True).stdout

        assert b"[redacted:known]" in REDACTOR.data(b"a " + written + b" z"), encoder


def test_short_values_are_not_taken_for_secrets() -> None:
    assert Redactor(["hunter2"]).text("hunter2") == "hunter2"


def test_a_value_may_be_the_name_of_a_family() -> None:
    redactor = Redactor(["redacted", "private-key", "authorization"])
    once = redactor.text("Authorization: Bearer abc123def456 redacted")

    assert once == "Authorization: Bearer [redacted:authorization] [redacted:known]"
    assert redactor.text(once) == once


@pytest.mark.promise("T6")
def test_bytes_of_any_encoding_are_redacted() -> None:
    key = next(text for family, text, _ in canaries(1) if family == "github")
    data = b"\xff\xfe " + key.encode() + " größe ".encode() + KNOWN[2].encode() + b"\x00\x80"

    assert (
        REDACTOR.data(data)
        == b"\xff\xfe [redacted:github] gr\xc3\xb6\xc3\x9fe [redacted:known]\x00\x80"
    )
    stream = REDACTOR.stream()
    parts = [stream.feed_data(data[at : at + 1]) for at in range(len(data))]
    assert b"".join([*parts, stream.flush_data()]) == REDACTOR.data(data)


def test_ordinary_text_is_passed_on_promptly() -> None:
    stream = REDACTOR.stream()
    text = "Reading the file and thinking about what to do with it, word for word. " * 40
    behind = 0
    out = ""
    for at in range(0, len(text), 7):
        out += stream.feed(text[at : at + 7])
        behind = max(behind, at + 7 - len(out))

    assert behind < 64
    assert out + stream.flush() == text


@pytest.mark.parametrize(
    "text",
    [
        "password=" + "a1" * 50_000 + " after",
        '{"client_secret": "' + "a1 " * 50_000 + '", "b": 1}',
        "Cookie: a=" + "b1" * 50_000 + "\nafter",
        "eyJ" + "a1" * 10 + "." + "b2" * 50_000 + "." + "c" * 40 + " after",
        "sk-ant-" + "a1" * 50_000 + "\nafter",
        "-----BEGIN PRIVATE KEY-----\n"
        + ("A1" * 32 + "\n") * 3000
        + "-----END PRIVATE KEY-----\nafter",
        "a1" * 50_000 + "-ghp_" + "b2" * 18 + " after",
        "token: " + "word " * 20_000 + "after",
        "://" + "a" * 100_000 + ":b@c after",
    ],
    ids=lambda text: text[:16],
)
@pytest.mark.parametrize("size", [1000, 4096, 100_000])
def test_a_secret_longer_than_the_bound_is_safe_and_not_held(text: str, size: int) -> None:
    stream = REDACTOR.stream()
    whole = REDACTOR.text(text)
    out = ""
    for at in range(0, len(text), size):
        out += stream.feed(text[at : at + size])
        assert stream.held <= HELD_LONGEST
    assert out + stream.flush() == whole


def test_a_key_that_was_cut_off_does_not_hide_what_follows() -> None:
    text = "-----BEGIN PRIVATE KEY-----\n" + "A1" * 32 + "\nA1A1\n2026 INFO going on {}\n"

    assert REDACTOR.text(text) == "[redacted:private-key]\n2026 INFO going on {}\n"
