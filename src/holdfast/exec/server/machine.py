"""What a client may know about the machine that the server runs on."""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from holdfast import __version__
from holdfast.exec.core.file_uri import uri_of
from holdfast.exec.server.model import ConfigResult
from holdfast.exec.wire import Capabilities, EnvironmentInfo, ShellInfo

_SYSTEMS = {"darwin": "macos", "linux": "linux"}


def environment_info(environment: Mapping[str, str]) -> EnvironmentInfo:
    """Describe the machine as clients of this wire expect it."""
    try:
        cwd = uri_of(os.getcwdb())
    except FileNotFoundError:  # it was removed since we started, which is nobody's business
        cwd = None
    temporary = environment.get("TMPDIR") or "/tmp"
    return _described(environment.get("SHELL"), environment.get("HOME"), cwd, temporary)


@cache
def _described(
    shell: str | None, home: str | None, cwd: str | None, temporary: str
) -> EnvironmentInfo:
    """The same for all who come: each of them waits for it."""
    shell = shell or next(
        (each for each in ("/bin/bash", "/bin/sh") if os.access(each, os.X_OK)), "/bin/sh"
    )
    return EnvironmentInfo(
        shell=ShellInfo(name=Path(shell).name, path=shell),
        cwd=cwd,
        user_home_dir=None if home is None else uri_of(os.fsencode(home)),
        platform_os=_SYSTEMS.get(sys.platform, platform.system().lower()),
        temp_dir=uri_of(os.fsencode(temporary)),
        executor_version=__version__,
        capabilities=Capabilities(
            close_stdin=True,
            resize=True,
            list=True,
            kill=True,
            first_retained_seq=True,
            operator=True,
            places=True,
            keep=True,
            end=True,
            forget=True,
        ),
    )


def configuration(environment: Mapping[str, str]) -> ConfigResult:
    """Say that this machine has no configuration of its own for a client."""
    home = environment.get("HOME")
    where = None if home is None else uri_of(os.fsencode(home))
    return ConfigResult(where, where, socket.gethostname())
