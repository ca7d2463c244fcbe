"""Events out of order, late events, and time that moves on."""
