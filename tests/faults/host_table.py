"""What becomes of a session by what dies and when, as the tests prove it; written for people.

python -m tests.faults.host_table docs/what-survives-what.md
"""

from __future__ import annotations

import sys
from pathlib import Path

FAULTS = {
    "client": "the program that leads the session is killed",
    "host": "the process that holds the conversation is killed",
    "exec-server": "the server that all processes run on is killed",
    "agent": "the process of the agent is killed",
    "keeper": "the process that holds all others on the server is killed",
    "host stopped for 35 s": "the host is stopped with SIGSTOP, and goes on after 35 seconds",
    "disk full for 8 s": "the file system of the journal is full, and has room again",
}
STATES = ("idle", "streaming", "in a tool", "approval pending", "publishing")
RUNNERS = ("rehearsal", "codex", "native")
BUSY = ("streaming", "in a tool", "approval pending")
GOES_ON = "goes on"
_WORDS = {
    GOES_ON: "goes on",
    "HOST_CRASHED": "turn ends: *the agent crashed*",
    "RUNNER_ENDED": "turn ends: *the agent ended*",
}
_SAID = {
    "reconnecting": "*reconnecting…*",
    "unresponsive": "*backend unresponsive*, and that it is well again",
    "DISK_FULL": "*the disk is full*, if something was to be written meanwhile",
}
_HEAD = """\
# What survives what

Written by `python -m tests.faults.host_table`; do not edit. Each cell is a test with real
processes (`tests/faults/test_host_matrix.py`), once with the scripted runner, once with the real
Codex and once with our own agent, both on a scripted model: a session is brought into a state,
something is killed, and then the same is looked at every time. Our own agent has no process but
the host; what happens when it crashes in there is tried at every point of a turn
(`tests/faults/test_agent.py`).

- Every command that was acknowledged is in the journal, once; every record has been seen once,
  in order.
- What the agent wrote before is in the draft, and the draft can be published.
- The session goes on with the next prompt.
- When the session has ended, no process of the agent is left; when all of it is ended, no mount.

"""
_TAIL = """
What *the agent crashed* says: “The agent crashed and lost its current turn. Your conversation
history is saved. Press Enter to continue.” Whatever its tools had begun is listed as *interrupted,
may or may not have completed*. Nobody has to do anything but to ask again.

In between, in simulated time, the same happens under 500 seeds at any moment: hosts die, the power
fails in the middle of a write, links are cut, the disk is full, and everything is said twice.
"""


def expected(fault: str, state: str) -> str:
    """What becomes of the turn: it goes on, or ends with a failure of this code."""
    if state in BUSY and fault in {"host", "keeper"}:
        return "HOST_CRASHED"
    if state in BUSY and fault == "agent":
        return "RUNNER_ENDED"
    return GOES_ON


def said(fault: str) -> str | None:
    """What a person is told meanwhile, by a word for it."""
    words = {"host": "reconnecting", "keeper": "reconnecting"}
    words |= {"host stopped for 35 s": "unresponsive", "disk full for 8 s": "DISK_FULL"}
    return words.get(fault)


def page() -> str:
    """The whole page."""
    rows = [("", *STATES, "what is said"), ("---",) * (len(STATES) + 2)]
    for fault, meaning in FAULTS.items():
        cells = [_WORDS[expected(fault, state)] for state in STATES]
        rows.append((f"**{fault}**: {meaning}", *cells, _SAID.get(said(fault) or "", "nothing")))
    return _HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows) + _TAIL


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())
