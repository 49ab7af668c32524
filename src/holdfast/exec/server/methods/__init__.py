"""The JSON-RPC methods of the exec-server, by subject."""
