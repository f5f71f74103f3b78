"""What results say: one question, one function, one row. numpy and scipy only."""
