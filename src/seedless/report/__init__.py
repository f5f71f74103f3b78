"""What people look at: figures, tables, pages."""
