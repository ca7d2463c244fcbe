"""The colours of the page and the widget can be told apart, in light and in dark (WCAG 2.2, 1.4.3 and 1.4.11)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

VIEWS = Path(__file__).parents[2] / "studio/src/views.css"
COLOURS = {
    name: (light, dark)
    for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", VIEWS.read_text())
}
WORDS = ["text", "faint", "accent", "wrong", "keyword", "string", "number", "operator"]


def brightness(colour: str) -> float:
    """The relative luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((brightness(one), brightness(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_what_is_read_stands_out(scheme: int) -> None:
    own = {name: both[scheme] for name, both in COLOURS.items()}
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    pairs = [(word, ground) for word in WORDS for ground in ("ground", "raised")]
    pairs += [("on-accent", "accent"), ("text", "chosen"), ("faint", "chosen"), ("accent", "chosen")]
    weak = {pair: round(contrast(own[pair[0]], own[pair[1]]), 2) for pair in pairs}
    assert {pair: found for pair, found in weak.items() if found < 4.5} == {}
    dots = {f"colour{i}": round(contrast(own[f"colour{i}"], own["ground"]), 2) for i in range(8)}
    assert {name: found for name, found in dots.items() if found < 3} == {}
