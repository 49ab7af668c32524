"""A keeper of version 1 in few words, frozen: what it says must be understood for ever.

    python keeper_version_1.py STATE        holds processes, in the foreground, until it is killed

Uses nothing of ours, and does only what is needed of it: pipes, no terminals.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from typing import Any

Held = dict[str, Any]  # Any: JSON and descriptors, as version 1 had them


class Keeper:
    """The processes it holds, and the server that came last."""

    def __init__(self, state: str) -> None:
        lock = os.open(f"{state}/keeper.lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(f"{state}/keeper.sock")
        self.listener.listen(8)
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.told: set[str] = set()

    def serve(self) -> None:
        while True:
            server, _ = self.listener.accept()
            server.settimeout(0.02)
            self.told.clear()
            with server:
                self.attend(server)

    def attend(self, server: socket.socket) -> None:
        while True:
            try:
                if not (packet := server.recv(100_000)):
                    return
                self.answer(server, json.loads(packet))
            except TimeoutError:
                for key, child in self.children.items():
                    if child.poll() is not None and key not in self.told:
                        self.told.add(key)
                        status = self.status(child)
                        self.say(server, {"news": "exited", "key": key, "status": status})
            except (ConnectionError, BrokenPipeError):
                return

    def answer(self, server: socket.socket, message: Held) -> None:
        about = {"id": message["id"]}
        child = self.children.get(message.get("key", ""))
        match message["ask"]:
            case "hello":
                self.say(server, about | {"version": 1, "versions": [1], "pid": os.getpid()})
            case "end":
                self.say(server, about | {"is_ending": False})
            case "start":
                child = self.children[message["key"]] = self.start(message)
                self.say(server, about | self.held(message["key"]), child)
            case "list":
                for key, each in self.children.items():
                    self.told.add(key) if each.poll() is not None else None
                    self.say(server, about | {"more": True} | self.held(key), each)
                self.say(server, about | {"more": False})
            case "signal":
                is_there = child is not None and child.poll() is None
                if is_there and child is not None:
                    os.killpg(child.pid, message["signal"])
                self.say(server, about | {"is_sent": is_there})
            case "close_stdin" | "forget" as ask:
                if child is not None:
                    self.let_go(message["key"], child, is_forgotten=ask == "forget")
                self.say(server, about)

    def let_go(self, key: str, child: subprocess.Popen[bytes], *, is_forgotten: bool) -> None:
        if child.stdin is not None:
            child.stdin.close()
        if is_forgotten:
            child.kill()
            child.wait()
            del self.children[key]

    def start(self, order: Held) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            order["argv"],
            cwd=order["cwd"],
            env={**order["env"], "HOLDFAST_PROCESS": f"{order['key']}@{os.getpid()}.0.0"},
            stdin=subprocess.PIPE if order["pipe_stdin"] else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def held(self, key: str) -> Held:
        child = self.children[key]
        status = None if child.poll() is None else self.status(child)
        held = {"key": key, "pid": child.pid, "status": status, "holds": list(self.holds(child))}
        return {"held": held}

    def holds(self, child: subprocess.Popen[bytes]) -> dict[str, int]:
        named = {"stdin": child.stdin, "stdout": child.stdout, "stderr": child.stderr}
        return {name: end.fileno() for name, end in named.items() if end and not end.closed}

    def status(self, child: subprocess.Popen[bytes]) -> int:
        return child.returncode if child.returncode >= 0 else 128 - child.returncode

    def say(
        self, server: socket.socket, message: Held, child: subprocess.Popen[bytes] | None = None
    ) -> None:
        descriptors = [] if child is None else list(self.holds(child).values())
        socket.send_fds(server, [json.dumps(message).encode()], descriptors)


if __name__ == "__main__":
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    keeper = Keeper(sys.argv[1])
    print("listening", flush=True)
    keeper.serve()
