"""Tell the keys that leave a process from those meant for it: Enter ~ . as with ssh."""

from __future__ import annotations

_LINE_ENDS = b"\r\n"
_MARK, _LEAVE = ord("~"), ord(".")


class Escape:
    """Looks for ~. at the beginning of a line; a ~ that something else follows is passed on.

    A ~ at the end of what was typed so far is held back until the next key.
    """

    def __init__(self) -> None:
        self.has_left = False
        self._at_line_start = True
        self._is_marked = False

    def pass_on(self, typed: bytes) -> bytes:
        """What of it is meant for the process; nothing that follows a leave is."""
        passed = bytearray()
        for key in b"" if self.has_left else typed:
            if self._is_marked:
                self._is_marked = False
                if key == _LEAVE:
                    self.has_left = True
                    break
                passed.append(_MARK)
                if key == _MARK:  # ~~ is how to type one ~
                    self._at_line_start = False
                    continue
            elif self._at_line_start and key == _MARK:
                self._is_marked = True
                continue
            passed.append(key)
            self._at_line_start = key in _LINE_ENDS
        return bytes(passed)
