"""What a query asks: its steps and the constraints on them, one after the other, and the query without some of them."""
