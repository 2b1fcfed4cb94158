"""A session that this server does not know, made again of its transcript: `rebuild`, `kinds`, `log`."""
