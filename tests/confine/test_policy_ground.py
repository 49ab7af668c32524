"""Which directories of a PATH are seen inside."""

from __future__ import annotations

import pytest

from holdfast.confine.policy import SearchPath, search_path

HOME_OF_TOOLS = "/root/.pyenv"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/usr/bin:/bin", SearchPath("/usr/bin:/bin", (), ())),
        ("", SearchPath("/usr/bin:/bin", (), ())),
        ("/home/me/bin:/usr/bin", SearchPath("/usr/bin", (), ("/home/me/bin",))),
        ("/srv/bin:.:bin:/usr/bin", SearchPath("/usr/bin", (), ("/srv/bin",))),
        (
            "/opt/node/bin:/opt:/usr/bin",
            SearchPath("/opt/node/bin:/usr/bin", ("/opt/node",), ("/opt",)),
        ),
        ("/opt/../root/bin:/usr/bin", SearchPath("/usr/bin", (), ())),
        ("/root/.pyenv/bin:/root/.ssh", SearchPath("/root/.pyenv/bin", (), ("/root/.ssh",))),
        ("/usrlocal/bin:/usr/bin:/usr/bin", SearchPath("/usr/bin", (), ("/usrlocal/bin",))),
    ],
)
def test_search_path(value: str, expected: SearchPath) -> None:
    assert search_path(value, seen=(HOME_OF_TOOLS,)) == expected
