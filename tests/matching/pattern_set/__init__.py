"""Many patterns over one stream."""
