"""What every room stands on: configuration, digests, marks, registries, errors."""
