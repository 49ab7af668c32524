"""The ACP server answers and ends with its input, whatever files input and output are."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.running import COMMAND, environment

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}


@pytest.mark.parametrize("output", ["pipe", "file", "/dev/null"])
@pytest.mark.parametrize("input_", ["pipe", "file", "/dev/null", "closed"])
def test_it_answers_and_ends_with_its_input_whatever_that_is(
    tmp_path: Path, input_: str, output: str
) -> None:
    said, heard = tmp_path / "said", tmp_path / "heard"
    said.write_text(json.dumps(HELLO) + "\n")
    command = f"{shlex.join(COMMAND)} acp"
    words = {
        "pipe": f"cat {said} | {command}",
        "file": f"{command} <{said}",
        "/dev/null": f"{command} </dev/null",
        "closed": f"{command} <&-",
    }[input_]
    target = {"pipe": f"| cat >{heard}", "file": f">{heard}"}.get(output, ">/dev/null")
    ended = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{words} {target}"],
        env=environment(tmp_path),
        capture_output=True,
        timeout=100,
        check=False,
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    answered = heard.read_text().splitlines() if heard.exists() else []
    is_heard = input_ in ("pipe", "file") and output != "/dev/null"
    assert [json.loads(line)["id"] for line in answered] == [1] * is_heard
