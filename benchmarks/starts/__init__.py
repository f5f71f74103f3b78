"""Starts compared on networks of other libraries: causes of what a start costs, and the default."""
