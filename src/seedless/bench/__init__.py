"""One training step of ours against plain PyTorch, and several runs at once against one alone."""
