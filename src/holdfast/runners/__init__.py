"""Runners: adapters to agents, with one event vocabulary for all.

Names are loaded on first use: no host needs all runners.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import lazy_exports

if TYPE_CHECKING:
    from holdfast.runners.codex import CodexRunner
    from holdfast.runners.environment import RunnerEnvironment
    from holdfast.runners.mcp_config import secrets_of
    from holdfast.runners.native import NativeRunner
    from holdfast.runners.ports import Conversation, ReadMemory, Runner
    from holdfast.runners.redaction import RedactingRunner, RunnerWrapper
    from holdfast.runners.rehearsal.runner import DEMO, Rehearsal, is_sample, write_sample

__all__ = [
    "DEMO",
    "CodexRunner",
    "Conversation",
    "NativeRunner",
    "ReadMemory",
    "RedactingRunner",
    "Rehearsal",
    "Runner",
    "RunnerEnvironment",
    "RunnerWrapper",
    "is_sample",
    "secrets_of",
    "write_sample",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "RunnerWrapper": "redaction",
        "CodexRunner": "codex",
        "Conversation": "ports",
        "DEMO": "rehearsal.runner",
        "ReadMemory": "ports",
        "NativeRunner": "native",
        "Rehearsal": "rehearsal.runner",
        "Runner": "ports",
        "RunnerEnvironment": "environment",
        "RedactingRunner": "redaction",
        "is_sample": "rehearsal.runner",
        "secrets_of": "mcp_config",
        "write_sample": "rehearsal.runner",
    },
)
