"""For tests of every room: a sink that remembers, and keys that must never be seen again."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Iterator

import msgspec

from holdfast.telemetry.model import Level, TelemetryRecord

_ALNUM = string.ascii_letters + string.digits
_SAFE = _ALNUM + "_-"
_HEX = "0123456789abcdef"
_BASE64 = _ALNUM + "+/"

# How keys of each family look: `{<letter><count>}` stands for so many characters at random.
_SHAPES = {
    "openai": ("sk-{a48}", "sk-proj-{s74}", "sk-svcacct-{s60}", "sess-{a40}"),
    "anthropic": ("sk-ant-api03-{s93}AA", "sk-ant-oat01-{s86}"),
    "github": ("ghp_{a36}", "gho_{a36}", "ghu_{a36}", "ghs_{a36}", "ghr_{a36}"),
    "github-pat": ("github_pat_{a22}_{a59}",),
    "gitlab": ("glpat-{s20}", "glrt-{s20}", "glpat-{s27}.01.{s9}"),
    "aws": ("AKIA{u16}", "ASIA{u16}"),
    "gcp": ("AIza{s35}",),
    "google-oauth": ("ya29.{s60}", "GOCSPX-{s28}", "1//0{s60}"),
    "slack": (
        "xoxb-{d12}-{d12}-{a24}",
        "xoxp-{d12}-{d12}-{d12}-{h32}",
        "xapp-1-A{u10}-{d13}-{h64}",
    ),
    "stripe": ("sk_live_{a24}", "rk_live_{a24}", "whsec_{a32}"),
    "jwt": ("eyJ{a33}.eyJ{a80}.{s43}",),
    "npm": ("npm_{a36}",),
    "pypi": ("pypi-AgEIcHlwaS5vcmc{s120}",),
    "huggingface": ("hf_{a34}",),
    "twilio": ("SK{h32}",),
    "sendgrid": ("SG.{s22}.{s43}",),
    "digitalocean": ("dop_v1_{h64}", "doo_v1_{h64}", "dor_v1_{h64}"),
    "databricks": ("dapi{h32}",),
    "discord": ("MTA{a21}.{s6}.{s38}", "NzI{a21}.{s6}.{s27}"),
    "telegram": ("{d9}:AA{s33}",),
    "age": ("AGE-SECRET-KEY-1{u58}",),
    "azure": ("{a3}8Q~{s34}",),
    "groq": ("gsk_{a52}",),
    "xai": ("xai-{a80}",),
    "vault": ("hvs.{s90}",),
    "docker": ("dckr_pat_{s27}",),
    "shopify": ("shpat_{h32}",),
    "tailscale": ("tskey-auth-{a12}-{a32}",),
}
# What gives a secret away that has no form of its own; `§` is where it stands.
_SURROUNDINGS = {
    "assignment in a shell": ("ACME_API_KEY=§", "DB_PASSWORD=§", "export SESSION_TOKEN=§"),
    "assignment in JSON": ('{"client_secret": "§", "b": 1}', '{"apiKey":"§"}'),
    "assignment in escaped JSON": ('{\\"access_token\\": \\"§\\"}',),
    "assignment in YAML": ("  password: §\n", "secret_key: '§'\n"),
    "assignment in TOML": ('auth_token = "§"\n',),
    "query": ("https://example.org/cb?access_token=§&state=1",),
    "header": ("X-Api-Key: §", "X-Auth-Token: §\r\n"),
    "authorization": ("Authorization: Bearer §", "'authorization': 'token §'"),
    "cookie": ("Cookie: session=§; theme=dark\r\n", "Set-Cookie: sid=§; HttpOnly\r\n"),
    "password in an address": ("postgres://user:§@db.example.org:5432/app",),
    "aws secret": ("aws_secret_access_key = §", '"SecretAccessKey": "§"'),
    "azure storage": ("AccountName=x;AccountKey=§;EndpointSuffix=core.windows.net",),
    "azure signature": ("https://x.blob.core.windows.net/c?sv=2024&sig=§&se=2026",),
    "slack webhook": ("https://hooks.slack.com/services/T0/B0/§",),
    "flag": ("login --password § --quiet", "tool --api-token § run"),
    "element": ("<password>§</password>",),
}


class MemorySink:
    """Remembers every record."""

    name = "memory"

    def __init__(self, *, level: Level = Level.DEBUG) -> None:
        self.level = level
        self.records: list[TelemetryRecord] = []
        self.is_closed = False

    def take(self, record: TelemetryRecord) -> None:
        """Remember one record."""
        self.records.append(record)

    def close(self) -> None:
        """Note that it was closed."""
        self.is_closed = True

    def written(self) -> str:
        """All that was taken, as text to search in."""
        return "\n".join(
            msgspec.json.encode(record, enc_hook=str).decode() for record in self.records
        )


def canaries(seed: int) -> Iterator[tuple[str, str, str]]:
    """Made-up secrets of every family: the family, a text that holds one, and what must go.

    The same seed gives the same ones. None of them was ever a real key.
    """
    chance = random.Random(seed)
    for family, shapes in _SHAPES.items():
        for shape in shapes:
            key = _filled(shape, chance)
            yield family, key, _telling(key)
    for family, texts in _SURROUNDINGS.items():
        for text in texts:
            secret = _drawn(_ALNUM, 31, chance) + "7x"
            yield family, text.replace("§", secret), secret
    body = _drawn(_BASE64, 64 * 12, chance)
    lines = "\n".join(body[at : at + 64] for at in range(0, len(body), 64))
    pem = f"-----BEGIN RSA PRIVATE KEY-----\n{lines}\n-----END RSA PRIVATE KEY-----"
    yield "private key", pem, body[-64:]
    yield "private key in JSON", json.dumps({"private_key": pem}), body[:64]
    basic = base64.b64encode(f"user:{_drawn(_ALNUM, 20, chance)}".encode()).decode()
    yield "basic", f"Authorization: Basic {basic}", basic
    yield "basic alone", f"proxy said: Basic {basic}", basic


def _filled(shape: str, chance: random.Random) -> str:
    alphabets = {"a": _ALNUM, "s": _SAFE, "h": _HEX, "d": "123456789", "u": "ABCDEFGHJKLMNPQ234567"}
    parts = [
        [literal, _drawn(alphabets[kind[0]], int(kind[1:]), chance) if kind else ""]
        for literal, kind, _, _ in string.Formatter().parse(shape)
    ]
    return "".join(piece for part in parts for piece in part)


def _drawn(alphabet: str, count: int, chance: random.Random) -> str:
    inner = "".join(chance.choices(alphabet, k=count - 2))
    ends = [c for c in alphabet if c.isalnum()]  # so that a key ends where its last character is
    return chance.choice(ends) + inner + chance.choice(ends) if count > 1 else chance.choice(ends)


def _telling(key: str) -> str:
    """The part of a key that is worth something: all after the last known mark."""
    for mark in ("ya29.", "SG.", "8Q~", ":AA", "hvs.", "1//"):
        if mark in key:
            return key.partition(mark)[2]
    return key
