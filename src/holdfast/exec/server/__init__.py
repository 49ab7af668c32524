"""The exec-server: processes, files and the web for clients that come and go."""
