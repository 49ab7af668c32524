"""Writing to a person, and asking them, on real terminals and pipes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.pretending import PATIENCE, Screen, terminal
from tests.cli.running import environment

PRELUDE = """
import anyio
from holdfast.cli.terminal import Terminal

def meaning(line):
    return line.strip() or None

async def main(t):
"""
END = "\nasync def run():\n    await main(Terminal())\nanyio.run(run)\n"


def script(*lines: str) -> list[str]:
    return [sys.executable, "-c", PRELUDE + "".join(f"    {line}\n" for line in lines) + END]


@contextmanager
def shown(tmp_path: Path, *lines: str) -> Generator[Screen]:
    with terminal(script(*lines), environment(tmp_path, TERM="xterm")) as screen:
        yield screen


def test_a_note_breaks_the_line_that_text_has_begun(tmp_path: Path) -> None:
    lines = ("await t.say('Half')", "await t.note('beside')", "await t.end_line()")
    with shown(tmp_path, *lines, "await t.say('More')", "await t.end_line()") as screen:
        assert screen.end() == (0, "Half\nbeside\nMore\n")


def test_text_in_a_pipe_is_not_broken_by_notes(tmp_path: Path) -> None:
    lines = ("await t.say('Half')", "await t.note('beside')", "await t.say(' a line')")
    done = subprocess.run(
        script(*lines, "await t.end_line()", "await t.end_line()"),
        env=environment(tmp_path),
        capture_output=True,
        check=True,
    )

    assert (done.stdout, done.stderr) == (b"Half a line\n", b"beside\n")


def test_what_an_encoding_lacks_is_shown_as_an_escape(tmp_path: Path) -> None:
    done = subprocess.run(
        script("await t.say('zwölf 日\\n')", "await t.note('é')"),
        env=environment(tmp_path, PYTHONIOENCODING="ascii"),
        capture_output=True,
        check=True,
    )

    assert (done.stdout, done.stderr) == (b"zw\\xf6lf \\u65e5\n", b"\\xe9\n")


def test_a_question_is_asked_until_its_answer_has_a_meaning(tmp_path: Path) -> None:
    ask = "answer = await t.ask('Page\\n', 'First: ', meaning, again='Again: ')"
    with shown(tmp_path, ask, "await t.note(repr(answer))") as screen:
        screen.expect("First: ")
        screen.type("\n")
        screen.expect("Again: ")
        screen.type("so\n")

        assert screen.end() == (0, "Page\n  First: \n  Again: so\n'so'\n")


def test_a_secret_is_not_shown_and_the_next_one_is(tmp_path: Path) -> None:
    hidden = "a = await t.ask('', 'Key: ', meaning, is_secret=True)"
    with shown(tmp_path, hidden, "b = await t.ask('', 'Name: ', meaning)") as screen:
        screen.expect("Key: ")
        screen.type("hush\n")
        screen.expect("Name: ")
        screen.type("me\n")

        assert screen.end() == (0, "  Key: \n  Name: me\n")


def test_a_question_that_is_given_up_is_the_last(tmp_path: Path) -> None:
    lines = (
        "async with anyio.create_task_group() as tasks:",
        "    tasks.start_soon(t.ask, '', 'Well: ', meaning)",
        "    await anyio.sleep(0.1)",
        "    t.dismiss()",
        "await t.note(repr(await t.ask('', 'And now: ', meaning)))",
    )
    with shown(tmp_path, *lines) as screen:
        assert screen.end() == (0, "  Well: \nNone\n")


def test_text_waits_while_a_question_is_open(tmp_path: Path) -> None:
    lines = (
        "async with anyio.create_task_group() as tasks:",
        "    tasks.start_soon(t.ask, '', 'Well: ', meaning)",
        "    await anyio.sleep(0.1)",
        "    tasks.start_soon(t.say, 'Text\\n')",
    )
    with shown(tmp_path, *lines) as screen:
        screen.expect("Well: ")
        screen.type("y\n")

        assert screen.end() == (0, "  Well: y\nText\n")


def test_a_reader_that_does_not_read_holds_up_only_the_text(tmp_path: Path) -> None:
    lines = (
        "async with anyio.create_task_group() as tasks:",
        "    tasks.start_soon(t.say, 'x' * 1_000_000)",
        "    await anyio.sleep(0.1)",
        "    import os",
        "    os.write(2, b'still here')",
        "    tasks.cancel_scope.cancel()",
    )
    reading, writing = os.pipe()
    done = subprocess.run(
        script(*lines),
        env=environment(tmp_path),
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=PATIENCE,
        check=True,
    )
    os.close(writing)
    os.close(reading)

    assert done.stderr == b"still here"


def test_text_that_cannot_be_written_is_a_failure_and_a_note_is_not(tmp_path: Path) -> None:
    lines = ("await t.note('nobody hears this')", "await t.say('x')")
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" "$@" >&- 2>&-', *script(*lines)],
        env=environment(tmp_path),
        check=False,
    )
    full = subprocess.run(
        ["sh", "-c", 'exec "$0" "$@" > /dev/full', *script("await t.say('x')")],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "OutputLost" in full.stderr.splitlines()[-1]
    assert "No space left on device" in full.stderr


def test_all_input_is_read_whatever_its_bytes(tmp_path: Path) -> None:
    read = "from holdfast.cli.terminal import whole_input; print(ascii(whole_input()))"
    for source, text in (("printf 'a\\377' |", "'a\\udcff'"), ("exec <&-;", "''")):
        done = subprocess.run(
            ["sh", "-c", f'{source} "$@"', "sh", sys.executable, "-c", read],
            env=environment(tmp_path, PYTHONIOENCODING="utf-8:strict"),
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == f"{text}\n"
