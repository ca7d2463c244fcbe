"""Many patterns over one stream: how they share work, are changed, saved, and throttled."""
