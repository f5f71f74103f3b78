"""The fault bench of ``seedless doctor``: scripts, planted causes, and what the doctor said."""
