"""What is measured against what. Each module prints a table and writes JSON under results/."""
