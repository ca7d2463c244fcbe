"""Who works next: vertices take turns in the order from the inputs to the outputs, each until it has nothing to do.

So a wave of changes goes through all operators before any of it goes around again, batches stay as large as they can be, and nobody
waits for a loop to come to rest: not the outputs, and not what came in meanwhile.
"""

from __future__ import annotations

from stretto.dataflow.run.graph import Graph


def step(graph: Graph) -> bool:
    """Let one vertex take one batch, or one loop go to its next level; whether there was anything to do."""
    vertices = graph.vertices
    count = len(vertices)
    for ahead in range(count):
        at = (graph.turn + ahead) % count
        vertex = vertices[at]
        loop = vertex.loop
        if loop is not None and loop.waits and not vertex.has_data:
            # No data is under way in the loop; the next level goes around ahead of a speculative punctuation.
            graph.turn = loop.members[0].number
            loop.release()
            return True
        if vertex.waits:
            graph.turn = at
            vertex.step()
            return True
    # Before that, probing would keep the others from their work.
    return sum(flying.poll() for flying in graph.flying) > 0
