"""Who a request comes from, and what that person may do."""
