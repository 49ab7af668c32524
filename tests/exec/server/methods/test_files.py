"""What a client may do with files, in the words of the wire."""

from __future__ import annotations

import base64
import os
import stat
import sys
from itertools import count
from pathlib import Path

import pytest

from holdfast.confine.place.files import MergedRootFiles
from holdfast.exec.client.client import Client
from holdfast.exec.client.files import WHOLE_BYTES_MAX
from holdfast.exec.failures import FileFailed
from holdfast.exec.file_uri import uri_of
from holdfast.exec.server.connection import ConnectionHandler
from holdfast.exec.server.files import TreeOperations
from holdfast.exec.server.model import RemoveParams
from holdfast.rpc import Transport
from holdfast.rpc.transports.memory import pair
from tests.exec.server.housing import housed
from tests.exec.server.talking import Json, Refused, Talk, names, until

pytestmark = pytest.mark.anyio


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def uri(path: Path | bytes) -> str:
    return uri_of(os.fsencode(path))


def content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


async def refusal(talk: Talk, method: str, /, **params: object) -> tuple[int, str]:
    with pytest.raises(Refused) as refused:
        await talk.call(method, **params)
    return refused.value.code, refused.value.text


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A file, a directory, links: one inside, one dangling, one to a directory."""
    root = tmp_path / "place"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "file").write_bytes(b"hello")
    (root / "link").symlink_to("file")
    (root / "dangling").symlink_to("nowhere")
    (root / "way").symlink_to("sub")
    (root / "sub" / "deep" / "leaf").write_bytes(b"x")
    (root / ".hidden").mkdir()
    (root / ".hidden" / "inside").write_bytes(b"")
    return root


async def test_whole_files_are_read_and_written(tmp_path: Path, place: Path) -> None:
    odd = os.fsencode(place) + b"/\xff %?#"
    async with housed(tmp_path / "s") as server, server.talk() as talk:
        read = await talk.call("fs/readFile", path=uri(place / "link"))
        wrote = await talk.call("fs/writeFile", path=uri(odd), dataBase64=b64(b"\x00\xff"))
        again = await talk.call("fs/readFile", path=uri(odd))
        await talk.call("fs/writeFile", path=uri(place / "file"), dataBase64=b64(b"hi"))
        refused = [
            await refusal(talk, "fs/readFile", path=uri(place / "none")),
            await refusal(talk, "fs/readFile", path=uri(place)),
            await refusal(talk, "fs/readFile", path=str(place)),
            await refusal(talk, "fs/writeFile", path=uri(place), dataBase64=""),
            await refusal(talk, "fs/writeFile", path=uri(place / "no" / "x"), dataBase64=""),
            await refusal(talk, "fs/writeFile", path=uri(place / "x"), dataBase64="*"),
            await refusal(
                talk, "fs/readFile", path=uri(place / "file"), sandbox={"permissions": {}}
            ),
        ]

    assert (read, wrote) == ({"dataBase64": b64(b"hello")}, {})
    assert again == {"dataBase64": b64(b"\x00\xff")}
    assert (place / "file").read_bytes() == b"hi"
    assert [code for code, _ in refused] == [
        -32004,
        -32600,
        -32602,
        -32603,
        -32004,
        -32600,
        -32602,
    ]
    assert refused[0][1] == "No such file or directory (os error 2)"


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc here")
async def test_what_says_a_page_at_a_time_is_read_whole(tmp_path: Path) -> None:
    async with housed(tmp_path / "s") as server, server.talk() as talk:
        symbols = await talk.call("fs/readFile", path="file:///proc/kallsyms")

    assert base64.b64decode(symbols["dataBase64"]) == content("/proc/kallsyms")


async def test_nobody_waits_for_the_reader_of_a_pipe(tmp_path: Path, place: Path) -> None:
    os.mkfifo(place / "pipe")
    pipe = uri(place / "pipe")
    async with housed(tmp_path / "s") as server, server.talk() as talk:
        refused = [
            await refusal(talk, "fs/writeFile", path=pipe, dataBase64=""),
            await refusal(talk, "fs/open", path=pipe, handleId="h", mode="replace"),
            await refusal(
                talk,
                "fs/copy",
                sourcePath=uri(place / "file"),
                destinationPath=pipe,
                recursive=False,
            ),
            await refusal(talk, "fs/readFile", path=pipe),
        ]

    nobody = (-32603, "No such device or address (os error 6)")
    assert refused[:3] == [nobody] * 3
    assert refused[3][0] == -32600


async def test_links_are_followed_only_where_they_may_be(tmp_path: Path, place: Path) -> None:
    async with housed(tmp_path / "s") as server, server.talk() as talk:
        through = uri(place / "way" / "deep" / "leaf")
        assert await talk.call("fs/readFile", path=through) == {"dataBase64": b64(b"x")}
        plain = uri(place / "sub" / "deep" / "leaf")
        strict = await talk.call("fs/readFile", path=plain, followSymlinks=False)
        refused = [
            await refusal(talk, "fs/readFile", path=through, followSymlinks=False),
            await refusal(talk, "fs/readFile", path=uri(place / "link"), followSymlinks=False),
        ]

    assert strict == {"dataBase64": b64(b"x")}
    assert [code for code, _ in refused] == [-32603, -32603]


async def test_what_is_there_is_told(tmp_path: Path, place: Path) -> None:
    async with housed(tmp_path / "s") as server, server.talk() as talk:
        known = [
            await talk.call("fs/getMetadata", path=uri(place / name))
            for name in ("file", "link", "sub")
        ]
        missing = [
            await refusal(talk, "fs/getMetadata", path=uri(place / name))
            for name in ("none", "dangling")
        ]
        real = await talk.call("fs/canonicalize", path=uri(place / "way" / "deep"))
        listed = await talk.call("fs/readDirectory", path=uri(place))

    modified = (place / "file").stat().st_mtime_ns // 1_000_000
    assert known[0] == {
        "isDirectory": False,
        "isFile": True,
        "isSymlink": False,
        "size": 5,
        "createdAtMs": 0,
        "modifiedAtMs": modified,
    }
    assert known[1] == {**known[0], "isSymlink": True}
    assert (known[2]["isDirectory"], known[2]["isFile"]) == (True, False)
    assert [code for code, _ in missing] == [-32004, -32004]
    assert real == {"path": uri(place / "sub" / "deep")}
    assert [(e["fileName"], e["isDirectory"], e["isFile"]) for e in listed["entries"]] == [
        (".hidden", True, False),
        ("file", False, True),
        ("link", False, True),
        ("sub", True, False),
        ("way", True, False),
    ]


async def test_directories_are_made(tmp_path: Path, place: Path) -> None:
    async with housed(tmp_path / "s") as server, server.talk() as talk:
        await talk.call("fs/createDirectory", path=uri(place / "a" / "b"))
        await talk.call("fs/createDirectory", path=uri(place / "a" / "b"))
        refused = [
            await refusal(talk, "fs/createDirectory", path=uri(place / "a"), recursive=False),
            await refusal(talk, "fs/createDirectory", path=uri(place / "z" / "b"), recursive=False),
            await refusal(talk, "fs/createDirectory", path=uri(place / "file")),
        ]

    assert (place / "a" / "b").is_dir()
    assert [code for code, _ in refused] == [-32603, -32004, -32603]


def walk(place: Path, **more: object) -> Json:
    options = {"maxDepth": 9, "maxDirectories": 99, "maxEntries": 99}
    options |= {"followDirectorySymlinks": False, **more}
    return {"path": uri(place), "options": options}


async def test_trees_are_walked_within_limits(tmp_path: Path, place: Path) -> None:
    async with housed(tmp_path / "s") as server, server.talk() as talk:
        every = await talk.call("fs/walk", **walk(place))
        visible = await talk.call("fs/walk", **walk(place, pruneHiddenDirectories=True, maxDepth=1))
        followed = await talk.call("fs/walk", **walk(place, followDirectorySymlinks=True))
        few = await talk.call("fs/walk", **walk(place, maxEntries=2))
        refused = [
            await refusal(talk, "fs/walk", **walk(place, maxDepth=65)),
            await refusal(talk, "fs/walk", **walk(place / "none")),
        ]

    def names(found: Json) -> list[str]:
        return [e["path"].removeprefix(uri(place)) for e in found["entries"]]

    assert names(every) == [
        "/.hidden",
        "/file",
        "/sub",
        "/.hidden/inside",
        "/sub/deep",
        "/sub/deep/leaf",
    ]
    assert [e["kind"] for e in every["entries"]][:3] == ["directory", "file", "directory"]
    assert (every["errors"], every["truncated"]) == ([], False)
    assert names(visible) == ["/file", "/sub"]
    assert "/way" not in names(followed)  # it leads to what is walked already
    assert (names(few), few["truncated"]) == (["/.hidden", "/file"], True)
    assert [code for code, _ in refused] == [-32600, -32004]


async def test_trees_are_copied_and_removed(tmp_path: Path, place: Path) -> None:
    (place / "file").chmod(0o750)
    async with housed(tmp_path / "s") as server, server.talk() as talk:

        async def copy(source: str, target: str, *, recursive: bool) -> Json:
            return await talk.call(
                "fs/copy",
                sourcePath=uri(place / source),
                destinationPath=uri(place / target),
                recursive=recursive,
            )

        await copy("file", "copy", recursive=False)
        await copy("link", "link2", recursive=False)
        await copy("sub", "sub2", recursive=True)
        for source, target, recursive in (
            ("sub", "sub3", False),
            ("sub", "sub/deep/inner", True),
            ("sub", "way/inner", True),
            ("sub", "sub", True),
        ):
            with pytest.raises(Refused) as refused:
                await copy(source, target, recursive=recursive)
            assert refused.value.code == -32600
        await talk.call("fs/remove", path=uri(place / "way"))  # the link, not what it leads to
        kept = (place / "sub" / "deep" / "leaf").exists()
        await talk.call("fs/remove", path=uri(place / "sub"))
        await talk.call("fs/remove", path=uri(place / "none"))
        codes = [
            (await refusal(talk, "fs/remove", path=uri(place / "none"), force=False))[0],
            (await refusal(talk, "fs/remove", path=uri(place / "sub2"), recursive=False))[0],
        ]

    assert (place / "copy").read_bytes() == b"hello"
    assert (place / "copy").stat().st_mode & 0o777 == 0o750
    assert os.readlink(place / "link2") == "file"
    assert (place / "sub2" / "deep" / "leaf").read_bytes() == b"x"
    assert kept and not (place / "sub").exists() and not (place / "way").is_symlink()
    assert codes == [-32004, -32603]


async def test_files_are_read_and_written_in_blocks(tmp_path: Path, place: Path) -> None:
    new, old = uri(place / "new"), uri(place / "file")
    async with housed(tmp_path / "s") as server, server.talk() as talk:
        opened = await talk.call("fs/open", handleId="r", path=old)
        blocks = [
            await talk.call("fs/readBlock", handleId="r", offset=0, len=3),
            await talk.call("fs/readBlock", handleId="r", offset=3, len=30),
        ]
        await talk.call("fs/open", handleId="w", path=new, mode="replace")
        await talk.call("fs/writeBlock", handleId="w", offset=2, chunk=b64(b"two"))
        await talk.call("fs/writeBlock", handleId="w", offset=0, chunk=b64(b"01"))
        refused = [
            await refusal(talk, "fs/open", handleId="r", path=old),
            await refusal(talk, "fs/open", handleId="x" * 33, path=old),
            await refusal(talk, "fs/open", handleId="d", path=uri(place)),
            await refusal(talk, "fs/open", handleId="n", path=uri(place / "none")),
            await refusal(talk, "fs/open", handleId="n", path=old, mode="append"),
            await refusal(talk, "fs/readBlock", handleId="r", offset=0, len=0),
            await refusal(talk, "fs/readBlock", handleId="z", offset=0, len=1),
            await refusal(talk, "fs/writeBlock", handleId="r", offset=0, chunk="eA=="),
        ]
        closed = [await talk.call("fs/close", handleId="w") for _ in range(2)]

    assert opened == {"handleId": "r"}
    assert blocks == [{"chunk": b64(b"hel"), "eof": False}, {"chunk": b64(b"lo"), "eof": True}]
    assert (place / "new").read_bytes() == b"01two"
    assert [code for code, _ in refused] == [
        -32600,
        -32600,
        -32600,
        -32004,
        -32602,
        -32600,
        -32004,
        -32603,
    ]
    assert closed == [{}, {}]


@pytest.mark.promise("W7")
async def test_a_file_has_its_new_content_when_it_is_closed_and_not_before(
    tmp_path: Path, place: Path
) -> None:
    old = uri(place / "file")
    async with housed(tmp_path / "s") as server:
        async with server.talk() as talk:
            for handle in "abc":
                await talk.call("fs/open", handleId=handle, path=old, mode="replace")
                await talk.call("fs/writeBlock", handleId=handle, offset=0, chunk=b64(b"new"))
            contents = [content(str(place / "file"))]
            await talk.call("fs/close", handleId="a", discard=True)
            contents.append(content(str(place / "file")))
            await talk.call("fs/close", handleId="b")
            contents.append(content(str(place / "file")))
            (place / "file").write_bytes(b"later")
        async with server.talk():  # the first connection is gone, and its third file with it
            contents.append(content(str(place / "file")))
        await until(lambda: len(names(place)) == 6)

    assert contents == [b"hello", b"hello", b"new", b"later"]


async def test_open_files_go_with_their_connection(tmp_path: Path, place: Path) -> None:
    async with housed(tmp_path / "s") as server:
        async with server.talk() as talk:
            await talk.call("fs/getMetadata", path=uri(place))  # then the place is open, too
        before = len(os.listdir("/proc/self/fd"))
        async with server.talk() as talk:
            for number in range(128):
                await talk.call("fs/open", handleId=str(number), path=uri(place / "file"))
            assert (await refusal(talk, "fs/open", handleId="x", path=uri(place / "file")))[
                0
            ] == -32600
        async with server.talk(session=talk.session) as again:
            code, _ = await refusal(again, "fs/readBlock", handleId="1", offset=0, len=1)
        await until(lambda: len(os.listdir("/proc/self/fd")) <= before)

    assert code == -32004


@pytest.mark.long
async def test_a_tree_may_be_deep(tmp_path: Path) -> None:
    deep = tmp_path / "top" / "/".join("d" * 1200)
    async with housed(tmp_path / "s") as server, server.talk() as talk:
        await talk.call("fs/createDirectory", path=uri(deep), recursive=True)
        await talk.call(
            "fs/copy",
            sourcePath=uri(tmp_path / "top"),
            destinationPath=uri(tmp_path / "copy"),
            recursive=True,
        )
        is_copied = (tmp_path / "copy" / "/".join("d" * 1200)).is_dir()
        for top in ("top", "copy"):
            await talk.call("fs/remove", path=uri(tmp_path / top), recursive=True)

    assert is_copied
    assert names(tmp_path) == ["s"]


async def test_several_may_make_the_same_directories_at_once(tmp_path: Path) -> None:
    async with housed(tmp_path / "s") as server, server.talk() as talk:
        for number in range(40):
            path = tmp_path / str(number) / "/".join("d" * 10)
            asked = [await talk.ask("fs/createDirectory", {"path": uri(path)}) for _ in range(4)]
            assert [await talk.answer(each) for each in asked] == [{}] * 4


async def test_a_number_that_counts_nothing_is_refused(tmp_path: Path) -> None:
    refused: list[tuple[int, str]] = []
    async with housed(tmp_path / "s") as server, server.talk() as talk:
        for number in (-1, 2**63, 10**400):
            fetch = {"method": "GET", "url": "http://x/", "requestId": "r", "timeoutMs": number}
            refused += [
                await refusal(talk, "fs/readBlock", handleId="h", offset=number, len=1),
                await refusal(talk, "fs/writeBlock", handleId="h", offset=number, chunk=""),
                await refusal(talk, "process/read", processId="p", waitMs=number),
                await refusal(talk, "http/request", **fetch),
            ]

    assert [code for code, _ in refused] == [-32602] * 12


async def test_our_client_moves_large_files_past_the_limit_of_a_message_and_a_cut(
    tmp_path: Path,
) -> None:
    data = bytes(WHOLE_BYTES_MAX) + b"and more"
    numbers = count(1)
    async with housed(tmp_path / "s") as server:

        async def dial() -> Transport:
            ours, theirs = pair(buffer_bytes_max=2**20, message_bytes_max=43 * 2**20)
            number = next(numbers)
            if number == 1:
                theirs.outgoing.cut_after = 20 * 2**20
            server.tasks.start_soon(ConnectionHandler(number, theirs, server.shared).run)
            return ours

        async with Client(dial) as client:
            await client.files.write(tmp_path / "large", data)
            read = await client.files.read(tmp_path / "large")

    assert read == data
    assert next(numbers) == 3


class Swapping(MergedRootFiles):
    """Files of which directories become links as soon as somebody has looked at them."""

    def look(self, path: bytes, *, follow: bool = True) -> os.stat_result:
        found = super().look(path, follow=follow)
        if not follow and stat.S_ISDIR(found.st_mode):
            os.rename(path, path + b".aside")
            os.symlink(os.path.join(os.path.dirname(path), b"kept"), path)
        return found


@pytest.mark.parametrize("name", ["top", "top/sub"])
def test_what_becomes_a_link_while_it_is_removed_is_not_followed(tmp_path: Path, name: str) -> None:
    (tmp_path / "top" / "sub").mkdir(parents=True)
    for place in ("", "top"):
        (tmp_path / place / "kept").mkdir()
        (tmp_path / place / "kept" / "file").touch()
    files = Swapping(os.open("/", os.O_RDONLY))
    try:
        with pytest.raises(FileFailed):
            TreeOperations(files).remove(RemoveParams(uri(tmp_path / name)))
    finally:
        files.close()

    assert (tmp_path / "kept" / "file").exists()
    assert (
        (tmp_path / "top.aside" if name == "top" else tmp_path / "top")
        .joinpath("kept", "file")
        .exists()
    )
