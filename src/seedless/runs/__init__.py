"""A configuration or a user's model becomes a finished run: prepare, train, resume, seal, open."""
