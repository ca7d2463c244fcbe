"""What each kind of query asks of single events and of pairs of them."""
