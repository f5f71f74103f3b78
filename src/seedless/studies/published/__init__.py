"""One file per published experiment, each with its grid, measurements, tables and figure."""
