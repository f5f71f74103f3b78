"""Download datasets: transfers that resume, archives that are not trusted."""
