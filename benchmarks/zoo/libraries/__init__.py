"""The networks, one file for each library; `catalog` collects them."""
