"""A key is entered without being shown, and kept where only its owner can read it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

import pytest

from holdfast.agent.failures import KeyUnusable
from tests.cli.running import COMMAND, environment
from tests.cli.workbenches import Bench, at_bench
from tests.parts.pty_screen import on_screen

KEY = "sk-secret-of-a-test"


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        yield made


@pytest.mark.promise("T6")
def test_a_key_from_a_pipe_is_kept_and_other_lines_stay(bench: Bench) -> None:
    file = bench.settings.config / "keys.toml"
    file.parent.mkdir(parents=True)
    file.write_text('# mine\nxai = "sk-x"\nopenai = "old"\n')
    file.chmod(0o600)
    done = bench.ran("login", "openai", stdin=f"{KEY}\n".encode())

    assert done.returncode == 0
    assert KEY.encode() not in done.stderr + done.stdout
    assert file.read_text() == f'# mine\nxai = "sk-x"\nopenai = "{KEY}"\n'
    assert tomllib.loads(file.read_text()) == {"xai": "sk-x", "openai": KEY}
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.promise("T6")
def test_what_is_typed_is_not_shown(bench: Bench) -> None:
    env = environment(bench.home, OPENAI_API_KEY="another")
    command = [*COMMAND, "login", "openai"]
    with on_screen(command, cwd=bench.project, env=env, size=(80, 24)) as screen:
        screen.sees("Key of openai")
        screen.type(f"{KEY}\n")
        assert screen.ended() == 0
        assert KEY not in screen.scrolled
        assert "OPENAI_API_KEY is set, too" in screen.scrolled
    assert KEY in (bench.settings.config / "keys.toml").read_text()


@pytest.mark.parametrize(
    ("words", "stdin", "status", "said"),
    [
        (("login",), b"", 2, b"name a provider: anthropic"),
        (("login", "nobody"), b"x", 1, b"MODEL_PROVIDER_UNKNOWN"),
        (("login", "ollama"), b"", 0, b"needs no key"),
        (("login", "openai"), b"", 2, KeyUnusable.code.encode()),
        (("login", "openai"), b"two words", 2, KeyUnusable.code.encode()),
        (("login", "openai"), b"x" * 5000, 2, KeyUnusable.code.encode()),
        (("login", "openai"), b"\xff\xfe", 2, KeyUnusable.code.encode()),
    ],
)
def test_what_is_no_key_is_refused_and_nothing_is_written(
    bench: Bench, words: tuple[str, ...], stdin: bytes, status: int, said: bytes
) -> None:
    done = bench.ran(*words, stdin=stdin)

    assert (done.returncode, said in done.stderr) == (status, True), done.stderr
    assert not (bench.settings.config / "keys.toml").exists()


def test_a_file_that_others_can_read_is_left_as_it_is(bench: Bench) -> None:
    file = bench.settings.config / "keys.toml"
    file.parent.mkdir(parents=True)
    file.write_text('openai = "old"\n')
    file.chmod(0o644)
    done = bench.ran("login", "openai", stdin=KEY.encode())

    assert (done.returncode, b"MODEL_KEY_FILE_OPEN" in done.stderr) == (78, True)
    assert file.read_text() == 'openai = "old"\n'
