"""What becomes of a session by what dies and when, as the tests prove it; written for people.

make matrix             runs every cell, then writes docs/what-survives-what.md
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.faults.host_casts import CASTS

FAULTS = {
    "client": "whoever leads the session (`holdfast attach`) or publishes is killed",
    "host": "the process that holds the conversation is killed",
    "exec-server": "the server that all processes run on is killed",
    "agent": "the process of the agent is killed",
    "keeper": "the process that holds all others on the server is killed",
    "network cut for 20 s": "nothing is carried between person, host, server and model",
    "host stopped for 35 s": "the host is stopped with SIGSTOP, and goes on after 35 seconds",
    "disk full": "the disk with the project, and all that is kept, is full, and has room again",
    "power": "nobody runs any more, and what was not on the disk is lost",
}
STATES = ("idle", "streaming", "in a tool", "approval pending", "publishing")
RUNNERS = tuple(CASTS)
BUSY = ("streaming", "in a tool", "approval pending")
GOES_ON = "goes on"
_WORDS = {
    GOES_ON: "goes on",
    "HOST_CRASHED": "turn ends: *the agent crashed*",
    "RUNNER_ENDED": "turn ends: *the agent ended*",
}
_SAID = {
    "reconnecting": "*reconnecting…*",
    "unresponsive": "*backend unresponsive*",
    "responsive": "that it is well again",
    "DISK_FULL": "*the disk is full*",
}
_HEAD = """\
# What survives what

Written by `make matrix`; do not edit. Each cell is a test with what people run
(`tests/faults/test_host_matrix.py`), once with the scripted runner, once with the real Codex and
once with our own agent, both on a scripted model: `holdfast ask` begins a session, the session is
brought into a state, harm is done, and then the same is looked at every time. Our own agent has no
process of its own that could be killed: it lives in the host.

- Every command that was acknowledged is in the journal, once; every record has been seen once,
  in order.
- When a turn that failed is declared over, no process of it lives; when the host is killed in a
  tool, the model and the draft are watched for 10 more seconds: no request, no write.
- What the agent wrote before is in the draft, and the draft can be published.
- The session goes on with the next prompt, and the agent knows what was said.
- When the session has ended, no process of the agent is left; when `holdfast stop --all` has ended
  the rest, no process at all, and no mount.

"""
_TAIL = """
What *the agent crashed* says: “The agent crashed and lost its current turn. Your conversation
history is saved. Press Enter to continue.” Whatever its tools had begun is listed as *interrupted,
may or may not have completed*. Nobody has to do anything but to ask again. After a power cut in the
middle of a turn, what that very turn had written may be missing from the draft.

In between, in simulated time, the same happens under 500 seeds at any moment: hosts die, the power
fails in the middle of a write, links are cut, the disk is full, and everything is said twice.

## Side by side

The power fails in the moment in which a turn is said to be completed
(`tests/faults/test_host_power.py`; ext4, both with the same Codex on the same scripted model):

|  | the session | the next prompt |
| --- | --- | --- |
| `codex exec` | its file is empty | refused: the session cannot be resumed |
| `holdfast ask --runner codex` | every record that was shown is there | goes on, and knows it all |

## MCP servers

A real MCP server that Codex uses in a turn does not notice that exec-servers die: its tool is
called once, and answers (`tests/journeys/test_host_mcp.py`).
"""


def expected(fault: str, state: str) -> str:
    """What becomes of the turn: it goes on, or ends with a failure of this code."""
    if state in BUSY and fault in {"host", "keeper", "power"}:
        return "HOST_CRASHED"
    if state in BUSY and fault == "agent":
        return "RUNNER_ENDED"
    return GOES_ON


def is_applicable(runner: str, fault: str) -> bool:
    """Whether a runner has what is harmed: our own agent has no process of its own."""
    return fault != "agent" or CASTS[runner].process != ""


def said(fault: str) -> set[str]:
    """What a person is told meanwhile, by words for it."""
    words = {
        "host": {"reconnecting"},
        "keeper": {"reconnecting"},
        "host stopped for 35 s": {"unresponsive", "responsive"},
        "disk full": {"DISK_FULL"},
    }
    return words.get(fault, set())


def page() -> str:
    """The whole page."""
    rows = [("", *STATES, "what is said"), ("---",) * (len(STATES) + 2)]
    for fault, meaning in FAULTS.items():
        cells = [_WORDS[expected(fault, state)] for state in STATES]
        told = ", then ".join(_SAID[word] for word in _SAID if word in said(fault))
        rows.append((f"**{fault}**: {meaning}", *cells, told or "nothing"))
    return _HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows) + _TAIL


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())
