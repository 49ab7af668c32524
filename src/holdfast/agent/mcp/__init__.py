"""MCP servers: configuration, supervision and their tools."""
