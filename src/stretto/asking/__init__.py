"""Why a query has no match: what it asks, which of it is in the way, and the events that nearly were a match."""
