"""The token: made once, for our own eyes."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.exec.failures import TokenUnsafe
from holdfast.exec.server.tokens import token_in


@pytest.mark.promise("X12")
def test_a_missing_token_is_made_and_kept(tmp_path: Path) -> None:
    made = token_in(tmp_path / "token")

    assert len(made) >= 40
    assert token_in(tmp_path / "token") == made
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    assert token_in(tmp_path / "other") != made
    assert sorted(each.name for each in tmp_path.iterdir()) == ["other", "token"]


@pytest.mark.parametrize(
    ("content", "mode"), [(b"secret", 0o644), (b"", 0o600), (b" \n", 0o600), (b"\xff", 0o600)]
)
def test_a_file_that_is_no_secret_is_refused(tmp_path: Path, content: bytes, mode: int) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    path.chmod(mode)

    with pytest.raises(TokenUnsafe):
        token_in(path)


def test_a_place_where_no_file_can_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TokenUnsafe):
        token_in(tmp_path / "none" / "token")
