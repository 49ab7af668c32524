"""Model providers: wire formats, streaming, retries, keys and prices."""
