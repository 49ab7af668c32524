"""The handlers of commands: each parses nothing, calls, and renders."""
