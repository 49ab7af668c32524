"""Transports of JSON-RPC messages: child processes, stdio, Unix sockets, WebSocket, memory."""
