"""What was found is shown by file, with named lines, in bounds."""

from __future__ import annotations

import base64
import json

from holdfast.agent.text import PAGE_MAX
from holdfast.agent.tools.documents import tagged
from holdfast.agent.tools.search_results import SearchResults, path_in
from holdfast.nouns import RelativePath


def said(kind: str, path: str, number: int | None = None, text: str = "", **more: object) -> bytes:
    body = {"path": {"text": path}, "lines": {"text": text}, "line_number": number, **more}
    return json.dumps({"type": kind, "data": body}).encode()


def fed(findings: SearchResults, path: str, *lines: tuple[str, int, str]) -> SearchResults:
    findings.take_line(said("begin", path))
    for kind, number, text in lines:
        findings.take_line(said(kind, path, number, text))
    findings.take_line(said("end", path, binary_offset=None))
    return findings


def test_lines_are_grouped_by_file() -> None:
    findings = SearchResults(10)
    fed(findings, "./a", ("context", 1, "x\n"), ("match", 2, "y\r\n"), ("match", 9, "z"))
    fed(findings, "b/c", ("match", 1, "w\n"))

    x, y, z, w = (
        tagged([text], number)[0] for text, number in (("x", 1), ("y", 2), ("z", 9), ("w", 1))
    )
    assert findings.text().split("\n") == [
        "a", f"  {x}", f"> {y}", "  …", f"> {z}", "", "b/c", f"> {w}",
    ]  # fmt: skip
    assert (findings.matches, findings.files, findings.is_full) == (3, 2, False)


def test_only_so_many_are_shown() -> None:
    findings = fed(SearchResults(2), "a", ("match", 1, "x"), ("match", 2, "x"), ("match", 3, "x"))

    assert findings.is_full and findings.matches == 2
    assert findings.text().endswith("(there is more: narrow it down, or raise the limit)")


def test_only_so_much_is_shown() -> None:
    findings = SearchResults(500)
    for number in range(100):
        fed(findings, f"f{number}", ("match", 1, "x" * 1500))

    assert findings.is_full
    assert len(findings.text()) < PAGE_MAX + 100


def test_only_files_that_are_wanted_count() -> None:
    findings = SearchResults(10, "*.py")
    fed(findings, "a.py", ("match", 1, "x"))
    fed(findings, "b.js", ("match", 1, "x"))

    assert findings.files == 1
    assert SearchResults(10).text() == "nothing was found"


def test_what_is_binary_or_no_message_is_passed_over() -> None:
    findings = SearchResults(10)
    findings.take_line(b"{")
    findings.take_line(b'{"type":"summary","data":{}}')
    findings.take_line(said("begin", "a"))
    findings.take_line(said("match", "a", 1, "x"))
    findings.take_line(said("end", "a", binary_offset=7))

    assert findings.text() == "nothing was found"


def test_names_are_listed() -> None:
    findings = SearchResults(2, "*.py")
    for name in (b"./a.py", b"b.js", b"odd\n\xff.py", b"c.py"):
        findings.take_path(name)

    assert findings.text().split("\n")[:2] == ["a.py", "odd\\x0a\\xff.py"]
    assert findings.is_full
    assert path_in(b"./") is None
    assert path_in(b"./x") == RelativePath.of(b"x")


def test_bytes_that_are_no_text_are_read() -> None:
    findings = SearchResults(10)
    odd = {"bytes": base64.b64encode(b"caf\xe9\n").decode()}
    findings.take_line(said("begin", "a"))
    message = {"type": "match", "data": {"path": odd, "lines": odd, "line_number": 1}}
    findings.take_line(json.dumps(message).encode())
    findings.take_line(said("end", "a", binary_offset=None))

    assert findings.text().endswith("|caf�")
