"""The studio in a browser, as a user clicks it. It also makes the pictures of docs/studio.md, where ``STRETTO_PICTURES`` is set."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

import stretto
from stretto.studio.server import STATIC

playwright = pytest.importorskip("playwright.sync_api", reason="make test-browser installs Playwright")
HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PICTURES = os.environ.get("STRETTO_PICTURES")
FLIGHTS = ROOT / "examples/flights/flights2013.parquet"
LATE_AGAIN = """SELECT * FROM S
WHERE LATE AS first ; LATE AS second ; LATE AS third
FILTER first[dep_delay > 30] AND third[dep_delay > 60]
PARTITION BY [tailnum] WITHIN 12 hours"""

pytestmark = pytest.mark.browser
expect = playwright.expect
expect.set_options(timeout=60_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not (HERE / "node_modules").is_dir() or not (STATIC / "index.html").is_file():
        pytest.skip("make test-browser installs the browser and builds the page")
    told = subprocess.run(["node", "executable.mjs"], cwd=HERE, capture_output=True, text=True, check=True).stdout
    with playwright.sync_playwright() as started:
        made = started.chromium.launch(executable_path=json.loads(told), args=["--no-sandbox", "--disable-gpu"])
        yield made
        made.close()


def serve(data: Path | str, *options: str, **environment: str) -> tuple[subprocess.Popen[str], str]:
    """A studio, and its address."""
    code = "from stretto.cli import main; main()"
    command = [sys.executable, "-c", code, "studio", str(data), "--no-browser", *options]
    # As a user has it: what is not compiled yet runs as Python, and no call waits for the compiler.
    own = {name: value for name, value in os.environ.items() if name != "STRETTO_COMPILE"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=own | environment)
    assert process.stderr is not None
    told = re.search(r"http://127\.0\.0\.1:\S+", process.stderr.readline())
    assert told is not None
    return process, told[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("studio")
    events = {
        "type": [*list("ABCAB<"), "<img src=x onerror=alert(1)>"],
        "t": [1, 2, 3, 4, 5, 6, 7],
        "price": [10.0, 20.0, 5.0, 7.0, 70.0, 1.0, 2.0],
        "naïve name": ["é", "日本", "x", "y", "it's", "", None],
    }
    pq.write_table(pa.table(events), found / "a.parquet")
    pq.write_table(pa.table({"type": ["A"] * 3000, "t": range(3000), "v": range(3000)}), found / "many.parquet")
    return found


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    process, found = serve(folder, "--time", "t", "--seconds", "120")
    yield found
    process.terminate()
    assert process.wait(30) in (0, -15)


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address) as made:
        yield made


@contextmanager
def opened(browser: Any, address: str) -> Iterator[Any]:
    """A page on which nothing goes wrong, and which asks nothing of any other host."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    made = context.new_page()
    wrong: list[str] = []
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.on("console", lambda told: told.type == "error" and "422" not in told.text and wrong.append(told.text))
    made.on(
        "request", lambda asked: asked.url.startswith((address.partition("?")[0], "data:")) or wrong.append(asked.url)
    )
    made.set_default_timeout(60_000)
    made.goto(address)
    expect(made.locator("#automaton svg")).to_be_visible()
    yield made
    context.close()
    assert wrong == []


def write(page: Any, text: str) -> None:
    """Type a query in the place of the one that is there."""
    page.click(".cm-content")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def told(page: Any, text: str | re.Pattern[str]) -> None:
    expect(page.locator("#told")).to_contain_text(text)


PAIRS = "SELECT * FROM S\nWHERE A AS a ; B AS b\nWITHIN 10 [t]"


def test_a_query_is_written_run_and_looked_at(page: Any, folder: Path) -> None:
    assert "token" not in page.url
    write(page, PAIRS)
    told(page, "CEQL, variables a, b")
    expect(page.locator("#automaton .state")).to_have_count(4)  # the last one has two outlines
    page.keyboard.press("Control+Enter")
    told(page, "3 matches")
    wanted = stretto.match(PAIRS, folder / "a.parquet", time="t").to_pylist()
    rows = page.locator("#panel tbody tr")
    expect(rows).to_have_count(len(wanted))
    assert [one.split()[:2] for one in rows.nth(0).locator("td.number ~ td").all_inner_texts()[:2]] == [
        ["1", "10"],
        ["2", "20"],
    ]
    dots = page.locator("#timeline g.match")
    shown = [[int(dot.get_attribute("data-row")) for dot in line.locator("circle").all()] for line in dots.all()]
    assert shown == [one["positions"] for one in wanted]
    rows.nth(2).click()
    expect(page.locator("#timeline g.match.chosen")).to_have_count(1)
    expect(page.locator("#automaton .edge.lively")).to_have_count(2)
    page.locator("#timeline g.match.chosen circle").last.click()
    expect(page.locator("#card h2")).to_have_text("event 4, in the match as b")
    expect(page.locator("#card dd")).to_have_text(["B", "5", "70", "it's"])
    page.click("#card .close")
    expect(page.locator("#card aside")).to_have_count(0)


def test_a_mistake_is_marked_at_its_place(page: Any) -> None:
    write(page, "SELECT * FROM S WHERE A AS a FILTER a[prize > 3]")
    told(page, "line 1, column 39: unknown attribute 'prize'")
    told(page, "did you mean 'price'?")
    expect(page.locator(".cm-lintRange-error")).to_have_text("prize")
    write(page, "SELECT * FROM S WHERE 日 AS a FILTER a[`naïve name` = '😀' AND prize > 3]")
    expect(page.locator(".cm-lintRange-error")).to_have_text("prize")
    write(page, "SELECT * FROM S WHERE A AS")
    expect(page.locator(".cm-lintRange-error")).to_have_text("S")  # it stands behind the last character
    write(page, PAIRS)
    expect(page.locator(".cm-lintRange-error")).to_have_count(0)


def test_columns_types_and_texts_are_completed(page: Any) -> None:
    write(page, "SELECT * FROM S WHERE A AS a FILTER a[")
    page.keyboard.type("pri")
    expect(page.locator(".cm-tooltip-autocomplete li").first).to_contain_text("price")
    expect(page.locator(".cm-tooltip-autocomplete li").first).to_contain_text("double")
    page.wait_for_timeout(200)  # what comes at once is not taken by the next key
    page.keyboard.press("Enter")
    page.keyboard.type(" > 3 AND `naïve name` = 'it")
    expect(page.locator(".cm-tooltip-autocomplete li").first).to_contain_text("it''s")


def test_the_automaton_of_a_pattern_with_a_negation(page: Any) -> None:
    write(
        page, "PATTERN SEQ(A a, B+ b[], ~(C n), A c) WHERE skip_till_next_match { b[i].price > b[i-1].price } WITHIN 9"
    )
    told(page, "SASE, variables a, b, c")
    drawn = page.locator("#automaton svg")
    expect(drawn).to_contain_text("~(C n)")
    expect(drawn).to_contain_text("b[i].price > b[i-1].price")
    expect(drawn.locator(".state")).to_have_count(7)  # a, b[1], b[i], c, F with two outlines, the negation
    page.click("#tab-steps")
    expect(page.locator("#panel")).to_contain_text("1 partial match")
    expect(drawn.locator(".edge.lively")).to_have_count(1)


def test_a_state_shows_its_partial_matches(page: Any) -> None:
    write(page, "SELECT * FROM S WHERE A AS a ; B AS b ; C AS c WITHIN 10 [t]")
    told(page, "variables a, b, c")
    page.click("#tab-steps")
    page.fill("#count", "4")
    page.keyboard.press("Enter")  # the first A has a match with all three; only the second one waits
    expect(page.locator("#panel")).to_contain_text("1 partial match")
    states = page.locator("#automaton .node")
    states.filter(has_text="q2").click()
    expect(page.locator("#panel")).to_contain_text("0 of those shown at this state")
    expect(page.locator("#panel tbody tr")).to_have_count(0)
    states.filter(has_text="q1").click()
    expect(page.locator("#panel tbody tr")).to_have_count(1)
    page.click("#all")
    expect(page.locator("#panel")).not_to_contain_text("at this state")


def test_events_step_on_and_back(page: Any) -> None:
    write(page, PAIRS)
    told(page, "CEQL")
    page.click("#tab-steps")
    expect(page.locator("#count")).to_have_value("1")
    expect(page.locator("#panel")).to_contain_text("1 partial match")
    expect(page.locator("#automaton .edge.lively")).to_have_count(1)
    page.click("#on")
    expect(page.locator("#panel")).to_contain_text("1 match completed by this event")
    page.locator("#panel").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#card h2")).to_have_text("event 2")
    expect(page.locator("#panel")).to_contain_text("0 matches completed")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#panel")).to_contain_text("1 match completed by this event")
    page.keyboard.press("Home")
    expect(page.locator("#count")).to_have_value("0")
    expect(page.locator("#back")).to_be_disabled()


def test_it_says_why_there_is_no_match(page: Any) -> None:
    write(page, PAIRS.replace("\nWITHIN", " FILTER b[price > 90]\nWITHIN"))
    told(page, "CEQL")
    page.click("#tab-why")
    expect(page.locator("#panel")).to_contain_text("b[price > 90] does not hold: price is 70")
    page.click("#run")
    told(page, "0 matches in 7 events")
    expect(page.locator("#panel table")).to_have_count(0)
    page.click("#why-none")
    expect(page.locator("#panel")).to_contain_text("b[price > 90] does not hold: price is 70")
    write(page, "SELECT COUNT(*) AS n FROM S WHERE A AS a ; B AS b")
    page.click("#run")
    told(page, "1 match")
    expect(page.locator("#panel tbody tr td")).to_have_text(["1", "3"])


def test_it_says_why_an_event_is_in_a_match_or_in_none(page: Any) -> None:
    write(page, PAIRS.replace("\nWITHIN", " FILTER b[price > 15]\nWITHIN"))
    told(page, "CEQL")
    page.click("#tab-events")
    page.locator("#panel tbody tr").nth(1).click()
    expect(page.locator("#card h2")).to_have_text("event 1")
    page.click("#why-event")
    expect(page.locator("#card .why")).to_contain_text("Row 1 is in a match")
    page.locator("#panel tbody tr").nth(5).click()
    expect(page.locator("#card .why")).to_have_count(0)
    page.locator("#why-event").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#card .why")).to_contain_text("Row 5 is in no match")


def test_patterns_change_while_the_events_are_replayed(page: Any) -> None:
    write(page, PAIRS)
    told(page, "CEQL")
    page.click("#tab-replay")
    rows = page.locator("#panel .patterns tbody tr")
    expect(rows).to_have_count(1)
    expect(page.locator("#reached")).to_have_text("0 of 7 events")
    for _ in range(2):
        page.click("#next")
    expect(page.locator("#reached")).to_have_text("2, 2 of 7 events")
    expect(page.locator("#panel h2")).to_have_text("1 match")
    expect(page.locator("#timeline g.match")).to_have_count(1)
    write(page, "SELECT * FROM S WHERE C AS c ; B AS b")
    page.keyboard.press("Control+Enter")
    expect(rows.nth(0)).to_contain_text("WHERE C AS c ; B AS b")
    page.fill("#pattern", "p2")
    expect(page.locator("#put")).to_have_text("Put the query in")
    write(page, "SELECT * FROM S WHERE A AS a FILTER a[prize > 1]")
    page.click("#put")
    told(page, "unknown attribute 'prize'")
    expect(page.locator(".cm-lintRange-error")).to_have_text("prize")
    expect(rows).to_have_count(1)
    write(page, "SELECT * FROM S WHERE A AS a")
    page.click("#put")
    expect(rows).to_have_count(2)
    page.get_by_label("pace").select_option("10")
    page.click("#play")
    expect(page.locator("#play")).to_have_text("Pause")
    page.locator("#pattern").focus()  # nothing that is drawn meanwhile takes it away
    page.keyboard.type("34")
    expect(page.locator("#reached")).to_contain_text("7 of 7 events")
    expect(page.locator("#pattern")).to_have_value(re.compile("34"))
    expect(page.locator("#pattern")).to_be_focused()
    # The first pair was found; then C and B, and the second A alone.
    expect(page.locator("#panel h2")).to_have_text("3 matches, the newest first")
    expect(rows.locator("td.number")).to_have_text(["2", "1"])
    found = page.locator("#panel table:not(.patterns) tbody tr")
    expect(found).to_have_count(3)
    found.nth(0).click()
    expect(page.locator("#timeline g.match.chosen")).to_have_count(1)
    page.locator("#timeline g.match.chosen circle").last.click()
    expect(page.locator("#card h2")).to_have_text("event 4, in the match as b")
    expect(page.locator("#play")).to_be_disabled()
    page.click("#put")
    told(page, "no event comes any more")
    page.click("#begin")
    expect(page.locator("#reached")).to_have_text("0 of 7 events")
    expect(rows).to_have_count(2)
    page.click("#out-p2")
    expect(rows).to_have_count(1)
    page.click("#edit-p1")
    expect(page.locator(".cm-content")).to_contain_text("WHERE C AS c ; B AS b")
    page.click("#play")
    page.click("#tab-events")  # it waits while nobody looks
    page.click("#tab-replay")
    expect(page.locator("#play")).to_have_text("Play")


def open_anew(page: Any, name: str, events: int) -> None:
    """Load the page anew, so that it lists the files that are new, and open one with its column ``t`` as the time."""
    page.reload()
    told(page, "CEQL")
    page.select_option("#roles select >> nth=0", name)
    expect(page.locator("#panel")).to_contain_text(f"of {events} events")
    page.select_option("#roles select >> nth=2", "t")
    expect(page.get_by_label("time", exact=True)).to_have_value("t")
    told(page, "CEQL")


def test_patterns_change_while_a_file_grows(page: Any, folder: Path) -> None:
    growing = folder / "growing.csv"
    growing.write_text("type,t\nA,1\nB,2\n")
    open_anew(page, "growing.csv", 2)
    write(page, PAIRS)
    told(page, "variables a, b")
    page.click("#tab-replay")
    expect(page.locator("#reached")).to_have_text("0 of 2 events")
    expect(page.locator("#disorder")).to_be_hidden()
    page.get_by_label("events", exact=True).select_option("live")
    expect(page.locator("#reached")).to_have_text("0 events")
    page.click("#next")
    expect(page.locator("#reached")).to_have_text("1, 1 events")
    page.click("#play")
    expect(page.locator("#reached")).to_have_text("2, 2 events")
    expect(page.locator("#panel h2")).to_have_text("1 match")
    page.locator("#panel table:not(.patterns) tbody tr").click()
    write(page, "SELECT * FROM S WHERE B AS b ; C AS c")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#panel .patterns")).to_contain_text("B AS b ; C AS c")
    with growing.open("a") as file:
        file.write("B,4\nC,5\nC,3\nC,soon\n")
    expect(page.locator("#panel h2")).to_have_text("2 matches, the newest first")
    expect(page.locator("#passed")).to_contain_text(
        "1 too late, passed over · 1 that cannot be read, passed over: C,soon"
    )
    expect(page.locator("#timeline g.match")).to_have_count(2)
    expect(page.locator("#panel tr.chosen td").first).to_have_text("1")  # it stays chosen while others come
    growing.unlink()
    expect(page.locator("#passed")).to_contain_text("the stream has broken off: 'growing.csv' has gone")
    expect(page.locator("#play")).to_have_text("Play")
    page.click("#end")
    expect(page.locator("#play")).to_be_disabled()


def test_events_that_may_be_late_are_held(page: Any, folder: Path) -> None:
    (folder / "late.jsonl").write_text('{"type": "B", "t": 9}\n{"type": "A", "t": 7}\n{"type": "A", "t": 1}\n')
    open_anew(page, "late.jsonl", 3)
    write(page, PAIRS)
    told(page, "variables a, b")
    page.click("#tab-replay")
    page.get_by_label("events", exact=True).select_option("live")
    page.fill("#disorder", "soon")
    page.keyboard.press("Tab")
    told(page, "disorder='soon'")
    expect(page.locator("#disorder")).to_have_value("")
    page.fill("#disorder", "3")
    page.keyboard.press("Tab")
    page.click("#play")
    expect(page.locator("#passed")).to_have_text("2 held until none earlier can come · 1 too late, passed over")
    expect(page.locator("#reached")).to_have_text("0 events")
    page.click("#end")
    expect(page.locator("#panel h2")).to_have_text("1 match")
    expect(page.locator("#passed")).to_have_text("1 too late, passed over · the stream has ended")
    open_anew(page, "a.parquet", 7)
    page.click("#tab-replay")
    page.get_by_label("events", exact=True).select_option("live")
    told(page, "'a.parquet' does not grow")
    expect(page.locator("#reached")).to_contain_text("of 7 events")


def test_patterns_change_while_a_topic_is_followed(browser: Any, tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.write_text('{"type": "A", "t": 1}\nnonsense\n{"type": "B", "t": 2}\n')
    path = os.pathsep.join([str(ROOT / "tests/studio/fake"), os.environ.get("PYTHONPATH", ""), str(ROOT)])
    process, address = serve("kafka://b:1/events", "--time", "t", PYTHONPATH=path, FAKE_KAFKA=str(events))
    try:
        with opened(browser, address) as page:
            expect(page.locator("#sampled")).to_contain_text(
                "1 that cannot be read, passed over: partition 0, offset 1"
            )
            expect(page.get_by_label("file").locator("option:checked")).to_have_text("events (Kafka)")
            write(page, PAIRS)
            page.click("#run")
            told(page, "1 match in 2 events")
            page.click("#tab-replay")
            page.get_by_label("events", exact=True).select_option(label="of the topic as they come")
            page.click("#play")
            expect(page.locator("#panel h2")).to_have_text("1 match")
            with events.open("a") as file:
                file.write('{"type": "B", "t": 3}\n{"type": "C"}\n')
            expect(page.locator("#panel h2")).to_have_text("2 matches, the newest first")
            expect(page.locator("#passed")).to_contain_text("1 without a time, passed over")
            away = events.rename(tmp_path / "away")
            expect(page.locator("#passed")).to_contain_text("no broker answers at b:1 (Connection refused)")
            away.rename(events)
            expect(page.locator("#passed")).not_to_contain_text("no broker")
            page.click("#end")
            expect(page.locator("#passed")).to_contain_text("the stream has ended")
    finally:
        process.terminate()


def test_texts_of_events_are_no_html(page: Any) -> None:
    page.click("#tab-events")
    expect(page.locator("#panel")).to_contain_text("<img src=x onerror=alert(1)>")
    expect(page.locator("#panel tbody tr td:last-child")).to_have_text(["é", "日本", "x", "y", "it's", "", "NULL"])
    write(page, "SELECT * FROM S WHERE `<img src=x onerror=alert(1)>` AS x")
    page.click("#run")
    told(page, "1 match")
    assert page.locator("img").count() == 0


def test_the_keyboard_is_enough(page: Any) -> None:
    write(page, PAIRS)
    page.keyboard.press("Control+Enter")
    told(page, "3 matches")
    expect(page.locator(".older:visible")).to_have_count(0)
    page.click(".cm-content")
    page.keyboard.type(" ")
    expect(page.locator(".older:visible")).to_have_count(2)  # above the table and above the timeline
    page.keyboard.press("Backspace")
    expect(page.locator(".older:visible")).to_have_count(0)
    page.locator("#panel tbody tr").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#panel tbody tr.chosen td").first).to_have_text("2")
    page.locator("#tab-matches").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tab-events")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#tab-events")).to_be_focused()
    expect(page.locator("td.number.held")).to_have_count(2)


def test_all_that_is_used_has_a_name(page: Any) -> None:
    unnamed = """() => [...document.querySelectorAll("button, input, select, progress, [role=button], [role=img], [contenteditable]")]
        .filter((one) => !(one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.[0]?.textContent.trim()))
        .map((one) => one.outerHTML)"""
    write(page, PAIRS)
    page.keyboard.press("Control+Enter")
    told(page, "3 matches")
    page.locator("#panel tbody tr").first.click()
    page.locator("#timeline g.match.chosen circle").last.click()
    for tab in ("matches", "events", "steps", "replay", "why", "explanation"):
        page.click(f"#tab-{tab}")
        if tab == "replay":
            expect(page.locator("#play")).to_be_visible()
        assert page.evaluate(unnamed) == [], tab
    page.click("#save-as")
    expect(page.locator("#save pre")).to_contain_text("[[query]]")
    assert page.evaluate(unnamed) == []


def test_a_run_is_cancelled(page: Any) -> None:
    page.select_option("#roles select >> nth=0", "many.parquet")
    told(page, "CEQL")
    write(page, "PATTERN SEQ(A a, A b, A c) WHERE skip_till_any_match { a.v > b.v + c.v }")
    told(page, "SASE")
    page.click("#run")
    page.click("#cancel")
    told(page, "stopped: it was cancelled")
    write(page, "SELECT * FROM S WHERE A AS a FILTER a[v >= 2850]")
    page.click("#run")
    told(page, "150 matches")
    page.get_by_role("button", name="next ›").click()
    expect(page.locator("#panel tbody tr")).to_have_count(50)


def test_a_query_is_saved(page: Any, folder: Path) -> None:
    write(page, PAIRS)
    told(page, "CEQL")
    page.click("#save-as")
    expect(page.locator("#save pre")).to_contain_text("[[query]]")
    page.select_option("#save-kind", "python")
    expect(page.locator("#save-name")).to_have_value("query.py")
    expect(page.locator("#save pre")).to_contain_text("stretto.match(QUERY")
    page.click("#save-now")
    expect(page.locator("#save [role=status]")).to_have_text("saved as query.py")
    done = subprocess.run([sys.executable, "query.py"], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.count("positions") == 3
    page.click("#save-now")
    expect(page.locator("#save [role=status]")).to_contain_text("is there already")
    page.fill("#save-name", "../query.py")
    page.click("#save-now")
    expect(page.locator("#save [role=status]")).to_contain_text("outside")


#: What a notebook does with the widget's script: it hands over the traits, and an element.
NOTEBOOK = """async ([shown, width]) => {
    const { default: views } = await import("/static/views.js");
    const el = document.createElement("div");
    el.id = "cell";
    el.style.width = width;
    document.body.replaceChildren(el);
    const listening = {};
    const traits = { shown, offset: 0 };
    window.model = {
        get: (name) => traits[name],
        set: (name, value) => { traits[name] = value; },
        save_changes: () => { window.asked = traits.offset; },
        on: (name, call) => { listening[name] = call; },
        off: (name) => { delete listening[name]; },
        change: (value) => { traits.shown = value; listening["change:shown"](); },
    };
    views.render({ model: window.model, el });
}"""


def test_the_widget_of_notebooks(page: Any) -> None:
    pytest.importorskip("anywidget", reason="pip install 'stretto[notebook]'")
    events = pa.table({"type": ["A", "B"] * 150, "t": range(300), "<b>": ["<i>x</i>"] * 300})
    made = stretto.studio.widget("SELECT * FROM S WHERE A AS a; B AS b WITHIN 1 [t]", events, time="t")
    page.evaluate(NOTEBOOK, [made.shown, "900px"])
    rows = page.locator("#cell tbody tr")
    expect(rows).to_have_count(100)
    expect(page.locator("#cell svg.automaton .state")).to_have_count(4)
    rows.nth(1).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#cell .edge.lively")).to_have_count(2)
    expect(page.locator("#cell g.match.chosen")).to_have_count(1)
    page.locator("#cell g.match.chosen circle").last.click()
    expect(page.locator("#cell .card h2")).to_have_text("event 3, in the match as b")
    expect(page.locator("#cell .card dd")).to_have_text(["B", "3", "<i>x</i>"])
    page.get_by_label("Close").click()
    expect(page.locator("#cell .card")).to_have_count(0)
    page.get_by_role("button", name="next ›").click()
    made.offset = page.evaluate("window.asked")
    page.evaluate("(shown) => window.model.change(shown)", made.shown)
    expect(rows).to_have_count(50)
    expect(rows.first.locator("td").first).to_have_text("101")
    expect(page.get_by_role("button", name="next ›")).to_be_disabled()


@pytest.mark.skipif(not PICTURES, reason="STRETTO_PICTURES names no folder")
def test_the_pictures_of_the_documentation(browser: Any) -> None:
    from PIL import Image

    process, found = serve(FLIGHTS, "--time", "sched_dep")
    try:
        page = browser.new_page(viewport={"width": 1240, "height": 760})
        page.set_default_timeout(60_000)

        def shot(name: str) -> None:
            path = Path(str(PICTURES)) / f"studio-{name}.png"
            page.screenshot(path=path)
            Image.open(path).convert("RGB").quantize(256).save(path, optimize=True)

        page.goto(found)
        told(page, "CEQL")
        write(page, LATE_AGAIN)
        told(page, "variables first, second, third")
        page.click("#run")
        told(page, re.compile(r"matches in 100,000 events, [0-9.]+ s"))
        page.locator("#panel tbody tr").nth(1).click(position={"x": 10, "y": 10})
        page.locator("#timeline g.match.chosen circle").last.click()
        shot("light")
        page.emulate_media(color_scheme="dark")
        shot("dark")
        page.emulate_media(color_scheme="light")
        end = page.evaluate("Number(document.querySelector('#timeline g.match.chosen circle:last-child').dataset.row)")
        page.click("#tab-steps")
        expect(page.locator("#count")).to_have_value("1")
        page.fill("#count", str(end + 1))
        page.keyboard.press("Enter")
        expect(page.locator("#panel")).to_contain_text("completed by this event")
        expect(page.locator("#card h2")).to_have_text(f"event {end}")
        shot("steps")
        page.click("#card .close")
        page.click("#tab-replay")
        page.fill("#pattern", "very-late")
        write(page, LATE_AGAIN.replace("30]", "120]"))
        told(page, "CEQL")
        page.click("#put")
        page.get_by_label("pace").select_option("10")
        page.click("#play")
        expect(page.locator("#panel .patterns td.number").nth(1)).to_have_text(re.compile("^[1-9]"))
        page.click("#play")
        expect(page.locator("#play")).to_have_text("Play")
        shot("replay")
        page.click("#tab-steps")
        write(page, LATE_AGAIN.replace("30]", "30 AND dep_dely < 90]"))
        expect(page.locator(".cm-lintRange-error")).to_have_text("dep_dely")
        shot("mistake")
        page.evaluate(NOTEBOOK, [stretto.studio.widget(LATE_AGAIN, FLIGHTS, time="sched_dep").shown, "1240px"])
        page.locator("#cell tbody tr").nth(1).click(position={"x": 10, "y": 10})
        shot("widget")
    finally:
        process.terminate()
