"""One reader per dataset."""
