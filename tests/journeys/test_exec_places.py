"""The real Codex works in a draft, as it would anywhere, and what is Published stays as it is."""

from __future__ import annotations

import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from holdfast.codex.wire.generated import CommandExecutionThreadItem
from holdfast.confine import end, strength_within
from holdfast.exec import operating
from holdfast.rpc import connect_websocket
from tests.cli.running import COMMAND, environment
from tests.exec.server.drafts import Draft, drafted
from tests.exec.server.talking import Served, served, talking
from tests.exec.server.test_launcher import workspace_write
from tests.journeys.stage import linux_only, staged
from tests.parts.codex_binary import codex_binary
from tests.parts.model_acts import Say, add_file, run

pytestmark = [pytest.mark.anyio, linux_only]


@pytest.fixture
def draft() -> Iterator[Draft]:
    """Not below /tmp: what Codex shuts in may write there, wherever it runs."""
    with (
        tempfile.TemporaryDirectory(dir="/var/lib", prefix="holdfast-test-") as made,
        drafted(Path(made)) as draft,
    ):
        yield draft


async def bound(server: Served, draft: Draft) -> str:
    """A token for the place, which only an operator can make."""
    token = (draft.state / "token").read_text().strip()
    async with operating(lambda: connect_websocket(server.url, token=token)) as operator:
        return await operator.bind_place(draft.name)


def guarded(draft: Draft) -> tuple[Path, str, str]:
    return draft.state, "--token-file", str(draft.state / "token")


@pytest.mark.promise("X12")
async def test_codex_with_a_bound_token_works_in_the_draft(draft: Draft) -> None:
    script = [
        [run("cat old; echo draft >new; rm old; id -u")],
        [add_file("patched.txt", "patched")],
        [Say("Done.")],
    ]
    async with served(*guarded(draft)) as server, staged(draft.base, script) as stage:
        token = await bound(server, draft)
        (Path(stage.env["CODEX_HOME"]) / "environments.toml").write_text(
            f'default = "ours"\n[[environments]]\nid = "ours"\nurl = "{server.url}"\n'
            f'auth_bearer_token = "{token}"\n'
        )
        async with stage.connect() as codex:
            thread = await codex.start_thread(cwd=draft.project)
            answer = await thread.ask("go")

    (item,) = (each for each in answer.items if isinstance(each, CommandExecutionThreadItem))
    assert (item.exit_code, item.aggregated_output) == (0, "published1000\n")
    assert (draft.upper / "new").read_text() == "draft\n"
    assert (draft.upper / "patched.txt").read_text() == "patched\n"
    assert (draft.upper / "old").is_char_device()  # that it was removed


async def test_the_sandbox_of_codex_works_inside_a_place(draft: Draft) -> None:
    """Codex shuts its commands in by itself when it runs in there; that nests."""
    home = draft.base / "codex"
    home.mkdir()
    script = "echo draft >new; echo x >../outside; mkdir .codex; cat old"
    argv = [str(codex_binary()), "sandbox", "-c", 'sandbox_mode="workspace-write"', "--"]
    async with served(*guarded(draft)) as server:
        token = await bound(server, draft)
        async with talking(server.url, token=token) as talk:
            await talk.introduce()
            env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "CODEX_HOME": str(home)}
            status, said = await talk.run(
                "p", *argv, "sh", "-c", script, cwd=draft.project.as_uri(), env=env
            )
    shutil.rmtree(home)

    assert (status, said.decode()[-9:]) == (0, "published")
    assert b"Read-only file system" in said
    assert (draft.upper / "new").read_text() == "draft\n"
    assert not (draft.base / "outside").exists()


async def test_a_token_of_a_place_outlives_the_server_and_not_its_end(draft: Draft) -> None:
    async with served(*guarded(draft), leave=True) as server:
        token = await bound(server, draft)
    async with served(*guarded(draft)) as server:
        async with talking(server.url, token=token) as talk:
            await talk.introduce()
            status, said = await talk.run("p", "cat", "old", cwd=draft.project.as_uri())
    assert (status, said) == (0, b"published")


@pytest.mark.parametrize("is_stopped", [True, False])
async def test_nothing_stands_in_a_draft_that_nobody_holds_any_more(
    draft: Draft, is_stopped: bool
) -> None:
    """Server and holder are killed in one moment; the next sign of life cleans up."""
    if strength_within(()) != "full":
        pytest.skip("there is no full sandbox on this machine")

    def stand_ins() -> list[Path]:
        return [path for path in draft.upper.rglob(".*") if path.lstat().st_mode & stat.S_ISVTX]

    how = {"sandbox": workspace_write(draft.project), "cwd": draft.project.as_uri()}
    async with served(*guarded(draft), leave=True) as server:
        token = await bound(server, draft)
        async with talking(server.url, token=token) as talk:
            await talk.introduce()
            await talk.start("p", "sleep", "100", **how)
            assert stand_ins()
            await server.kill()
            end(draft.name)
    assert stand_ins()
    if is_stopped:
        words = ["stop", "--all", "--state", str(draft.state), "--yes"]
        (draft.state.parent / "home").mkdir()
        done = await anyio.run_process(
            [*COMMAND, *words], env=environment(draft.state.parent / "home")
        )
        assert done.returncode == 0
    else:
        async with served(*guarded(draft)):
            pass
    assert not stand_ins()
