"""What every study is built from: grid, store, workers, tables, figures."""
