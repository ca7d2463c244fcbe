"""Who works next: the vertex nearest to the inputs that has something to do, then the loops that wait for their next level.

So a wave of changes goes through all operators before any of it goes around again, and batches stay as large as they can be.
"""

from __future__ import annotations

from stretto.dataflow.graph import Graph

__all__ = ["step"]


def step(graph: Graph) -> bool:
    """Let one vertex take one batch, or one loop go to its next level; whether there was anything to do."""
    for vertex in graph.vertices:
        if vertex.waits:
            if vertex.loop is not None and vertex.loop.waits and not vertex.has_data:
                break  # only a speculative punctuation is under way in the loop, and data waits for it
            vertex.step()
            return True
    for flying in graph.flying:
        if flying.waits:
            flying.release()
            return True
    # Before that, probing would keep from their work those who are further down.
    return sum(flying.poll() for flying in graph.flying) > 0
