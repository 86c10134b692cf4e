"""The MCP proxy: stands between a host and its servers. Needs the `proxy` extra."""
