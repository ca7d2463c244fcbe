"""The studio: a page in the browser to write queries, run them over a sample of events, and look at what they find.

The page asks the server, which only this machine reaches; the server asks worker processes, each of which has a workbench over the
events (``docs/studio.md``).
"""
