"""One training loop: schedule -> step -> scheduler -> evaluate -> select -> observers."""
