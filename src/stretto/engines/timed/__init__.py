"""The engine of gaps: the events of the window as a graph, in which a match is a path."""
