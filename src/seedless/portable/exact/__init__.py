"""The laws: grids, exact sums, exact products, elementary functions. Nothing about torch's ops."""
