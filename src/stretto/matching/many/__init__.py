"""Many queries over one stream: conditions evaluated once for all, events handed to the queries that they concern."""
