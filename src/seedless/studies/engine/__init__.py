"""What every study needs: options, grid, store, workers, results, tables, figures and the page."""
