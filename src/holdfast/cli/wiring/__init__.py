"""Parts put together for commands: hosts, runners, consent, tokens, the local server."""
