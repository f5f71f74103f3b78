"""Check a run of someone else: validate, execute again, verify, find the first difference."""
