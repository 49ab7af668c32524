"""What goes over the wire between a client and the Codex app-server."""
