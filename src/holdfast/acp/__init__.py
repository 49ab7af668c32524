"""The Agent Client Protocol server: sessions driven by an editor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import lazy_exports

if TYPE_CHECKING:
    from holdfast.acp.server import serve_editor

__all__ = ["serve_editor"]

__getattr__ = lazy_exports(__name__, {"serve_editor": "server"})
