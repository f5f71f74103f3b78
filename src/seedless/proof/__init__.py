"""Evidence about runs: what agreed, what differed, and where the difference began."""
