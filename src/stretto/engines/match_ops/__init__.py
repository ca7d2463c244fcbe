"""What is done with the matches of a run, whichever engine finds them: one operator a file, each a stage behind the run.

A run is started with its operator (:class:`~stretto.engines.api.Operator`), which it tells of the events that it visits. Where an
engine holds the matches of an event as a graph, it may do what is asked inside its kernel, without listing them.
"""
