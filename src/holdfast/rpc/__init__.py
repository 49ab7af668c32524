"""JSON-RPC peers over transports that may fail in every way."""
