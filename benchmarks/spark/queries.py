"""The queries of the Spark benchmarks, in CEQL and in what they are compared with."""

from __future__ import annotations

__all__ = [
    "SASE",
    "STEPS",
    "V_SHAPE",
    "contiguous",
    "flink",
    "flink_three_steps",
    "sequence",
    "speculative",
    "v_shape_clause",
    "v_shape_of_prices_clause",
]

#: The steps of the sequences: event type and stock, a twentieth of the events each.
STEPS = (
    ("SELL", "MSFT"),
    ("BUY", "ORCL"),
    ("BUY", "CSCO"),
    ("SELL", "AMAT"),
    ("BUY", "INTC"),
    ("SELL", "YHOO"),
)


def sequence(length: int, window: int, *, keyed: bool = False, consume: str = "", limit: int = 0) -> str:
    """The first ``length`` steps, one after the other with anything between, within ``window`` milliseconds."""
    steps = " ; ".join(f"{kind} AS s{number}" for number, (kind, _) in enumerate(STEPS[:length]))
    filters = " AND ".join(f"s{number}[name = '{name}']" for number, (_, name) in enumerate(STEPS[:length]))
    lines = [
        "SELECT * FROM S",
        f"WHERE {steps}",
        f"FILTER {filters}",
        "PARTITION BY [account]" if keyed else "",
        f"WITHIN {window} [millis]",
        f"CONSUME BY {consume}" if consume else "",
        f"LIMIT {limit}" if limit else "",
    ]
    return "\n".join(line for line in lines if line)


#: The template of the SASE+ paper's experiments (section 6) with accounts for symbols. A fiftieth of the events starts a run, a
#: seventh ends one; the window holds some fifty events of an account where a hundred thousand take turns.
SASE = {
    name: f"""PATTERN SEQ((SELL|BUY)+ a[], (SELL|BUY) b)
WHERE skip_till_next_match {{ [account] and a[1].price > 40.27 {condition} and b.volume < 1500 }}
WITHIN 50000000"""
    for name, condition in (
        ("p1", ""),
        ("p2", "and a[i].price > a[i-1].price"),
        ("p3 min", "and a[i].price > min(a[..i-1].price)"),
        ("p3 avg", "and a[i].price > avg(a[..i-1].price)"),
    )
}


def contiguous(window: int) -> str:
    """Three neighbouring events of the whole stream: every event matters, so that nothing can be left out before."""
    return f"""SELECT * FROM S
WHERE SELL AS a : BUY AS b : SELL AS c
FILTER a[price > 30] AND b[price < 30] AND c[price > 30]
WITHIN {window} [millis]"""


#: A fall of any length and the first rise after it, per account. CEQL relates no two events, so each event says how its
#: account's price moved. The first event is the last before the fall: one match for each fall that ends in a rise.
V_SHAPE = """SELECT * FROM S
WHERE (SELL OR BUY) AS top : (SELL OR BUY) AS fall :+ : (SELL OR BUY) AS rise
FILTER top[move != 'DOWN'] AND fall[move = 'DOWN'] AND rise[move = 'UP']
PARTITION BY [account]"""


def v_shape_clause(time: str) -> str:
    """:data:`V_SHAPE` with the same column. No two matches share their first row, so that skipping to the next row finds all."""
    return f"""MATCH_RECOGNIZE (
  PARTITION BY account ORDER BY {time}
  MEASURES TOP.{time} AS start_time, RISE.{time} AS end_time
  ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
  PATTERN (TOP FALL+ RISE)
  DEFINE TOP AS TOP.`move` <> 'DOWN', FALL AS FALL.`move` = 'DOWN', RISE AS RISE.`move` = 'UP'
)"""


def v_shape_of_prices_clause(time: str) -> str:
    """:data:`V_SHAPE` as one writes it in MATCH_RECOGNIZE: prices are compared in the pattern. A rise may be the next top."""
    return f"""MATCH_RECOGNIZE (
  PARTITION BY account ORDER BY {time}
  MEASURES TOP.{time} AS start_time, LAST(RISE.{time}) AS end_time
  ONE ROW PER MATCH AFTER MATCH SKIP TO LAST RISE
  PATTERN (TOP FALL+ RISE)
  DEFINE
    FALL AS (LAST(FALL.price, 1) IS NULL AND FALL.price < TOP.price) OR FALL.price < LAST(FALL.price, 1),
    RISE AS RISE.price > LAST(FALL.price)
)"""


def flink(clause: str) -> str:
    """A clause as a statement of Flink SQL that counts its rows."""
    return f"SELECT COUNT(*) FROM {{events}} {clause}"


def flink_three_steps(seconds: int, *, anything_between: bool = False) -> str:
    """Three steps, then a new start after the last row: ``CONSUME BY ANY LIMIT 1`` in CEQL.

    MATCH_RECOGNIZE is contiguous: rows between the steps are taken by variables. With ``anything_between`` these take any row,
    reluctantly; else all but the next step, which finds the same matches with fewer attempts.
    """
    (a, x), (b, y), (c, z) = STEPS[:3]
    between = "A G*? B H*? C" if anything_between else "A G* B H* C"
    gaps = (
        ""
        if anything_between
        else f"""
    G AS NOT (G.`type` = '{b}' AND G.name = '{y}'),
    H AS NOT (H.`type` = '{c}' AND H.name = '{z}'),"""
    )
    return f"""SELECT COUNT(*) FROM {{events}} MATCH_RECOGNIZE (
  ORDER BY rt
  MEASURES A.rt AS start_time, C.rt AS end_time
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN ({between}) WITHIN INTERVAL '{seconds}' SECOND
  DEFINE{gaps}
    A AS A.`type` = '{a}' AND A.name = '{x}',
    B AS B.`type` = '{b}' AND B.name = '{y}',
    C AS C.`type` = '{c}' AND C.name = '{z}'
)"""


def speculative(span: int) -> dict[str, tuple[str, str, list[str]]]:
    """Queries that can answer ahead of what is certain, what finds the same in order, and their columns.

    ``span`` milliseconds hold one event of each account.
    """
    steps = ", ".join(f"{kind} s{number}" for number, (kind, _) in enumerate(STEPS[:3]))
    names = " and ".join(f"s{number}.name = '{name}'" for number, (_, name) in enumerate(STEPS[:3]))
    sequence_of_sase = f"""PATTERN SEQ({steps})
WHERE skip_till_next_match {{ [account] and {names} }}
WITHIN {20 * span} milliseconds"""
    v_shape_of_sase = f"""PATTERN SEQ((SELL|BUY) top, (SELL|BUY)+ fall[], (SELL|BUY) rise)
WHERE partition_contiguity {{ [account] and top.move != 'DOWN' and fall[1].move = 'DOWN' and fall[i].move = 'DOWN'
    and rise.move = 'UP' }}
WITHIN {10 * span} milliseconds"""
    automaton = f"""partition_by = ["account"]
window = "{10 * span + 1} milliseconds"
final = ["rise"]
arcs = [
    {{ source = "q0", target = "top", when = "e.move <> 'DOWN'" }},
    {{ source = "top", target = "fall", when = "e.move = 'DOWN'" }},
    {{ source = "fall", target = "fall", when = "e.move = 'DOWN'" }},
    {{ source = "fall", target = "rise", when = "e.move = 'UP'" }},
]"""
    moves, named = ["type", "id", "account", "ts", "move"], ["type", "id", "account", "ts", "name"]
    return {
        "SASE+, sequence": (sequence_of_sase, sequence_of_sase, named),
        "SASE+, v-shape": (v_shape_of_sase, v_shape_of_sase, moves),
        "AFA, v-shape": (automaton, v_shape_of_sase, [name for name in moves if name != "type"]),
    }
