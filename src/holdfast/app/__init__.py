"""Where the program is put together: settings, and what the machine can do."""
