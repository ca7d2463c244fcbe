"""Where events come from: tables, batches, files; merged, ordered, and cut to what a query reads."""
