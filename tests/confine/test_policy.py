"""What a policy may ask for, and what of an environment it lets through."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.confine.failures import SandboxRequestUnfit
from holdfast.confine.policy import (
    ENVIRONMENT,
    SandboxPolicy,
    allowed_environment,
    checked,
    is_within,
)

CANARIES = (
    "ANTHROPIC_API_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_SECRET",
    "CARGO_REGISTRY_TOKEN",
    "DATABASE_URL",
    "DOCKER_AUTH_CONFIG",
    "GEMINI_API_KEY",
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GITLAB_TOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "HF_TOKEN",
    "LC_TOKEN",
    "NPM_TOKEN",
    "OPENAI_API_KEY",
    "PGPASSWORD",
    "SLACK_BOT_TOKEN",
    "SSH_AUTH_SOCK",
    "STRIPE_SECRET_KEY",
    "TWINE_PASSWORD",
)


@pytest.mark.parametrize(
    "policy",
    [
        SandboxPolicy(writable=("/",)),
        SandboxPolicy(readable=("/",)),
        SandboxPolicy(readable=("//",)),
        SandboxPolicy(writable=("relative",)),
        SandboxPolicy(writable=("/work/../etc",)),
        SandboxPolicy(writable=("/work/",)),
        SandboxPolicy(readable=("/wo\0rk",)),
        SandboxPolicy(readable=("",)),
        SandboxPolicy(writable=("/usr",)),
        SandboxPolicy(writable=("/etc/cron.d",)),
        SandboxPolicy(writable=("/proc/1/root",)),
        SandboxPolicy(writable=("/work",), protected=("/etc",)),
        SandboxPolicy(writable=("/work",), protected=("../other",)),
        SandboxPolicy(writable=("/work",), protected=("a//b",)),
        SandboxPolicy(writable=("/work", "/work/.git/hooks")),
        SandboxPolicy(writable=("/work", "/work/.claude/commands")),
    ],
)
def test_what_makes_no_sense_is_refused(policy: SandboxPolicy) -> None:
    with pytest.raises(SandboxRequestUnfit):
        checked(policy)


def test_what_makes_sense_stays_as_it_is() -> None:
    policy = SandboxPolicy(
        readable=("/opt/x",), writable=("/work", "/work/.github"), hidden=("/work/s",)
    )
    assert checked(policy) == policy


@pytest.mark.promise("C22")
def test_no_secret_is_let_through_unless_it_is_spelt_out() -> None:
    offered = dict.fromkeys(CANARIES, "canary") | {"LANG": "C", "LC_TIME": "C"}
    assert allowed_environment(offered, ENVIRONMENT) == {"LANG": "C", "LC_TIME": "C"}
    assert "GH_TOKEN" not in allowed_environment(offered, ("*",))
    assert allowed_environment(offered, ("GH_TOKEN",)) == {"GH_TOKEN": "canary"}


@given(st.text(st.sampled_from("/ab."), max_size=12), st.text(st.sampled_from("/ab."), max_size=8))
def test_below_means_by_whole_names(path: str, root: str) -> None:
    parts, around = path.strip("/").split("/"), root.strip("/").split("/")
    if "//" in path or "//" in root or not path.startswith("/") or not root.startswith("/"):
        return
    if root == "/" or path.endswith("/") or root.endswith("/"):
        return
    assert is_within(path, (root,)) == (parts[: len(around)] == around)
