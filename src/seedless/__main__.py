"""`python -m seedless` is `seedless`."""

from seedless.cli.main import main

main()
