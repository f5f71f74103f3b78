"""Judge between two parties whose runs of one portable configuration differ: `seedless referee`."""
