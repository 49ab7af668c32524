"""The proxy through which a sandbox reaches the hosts of its allowlist."""
