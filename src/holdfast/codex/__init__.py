"""An SDK for the Codex app-server that survives everything."""
