"""What a person reads: tables, pages, colours, errors in words."""
