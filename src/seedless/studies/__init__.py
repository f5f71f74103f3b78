"""Every published experiment as a grid of runs and a table with the published value beside ours."""
