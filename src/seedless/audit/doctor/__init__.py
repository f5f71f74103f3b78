"""Say why two runs of any training script differ: `seedless doctor`."""
