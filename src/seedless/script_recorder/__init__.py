"""Records what a training script does, from inside its own process."""
