"""Training by several processes: the same bits for every world, and what a step costs."""
