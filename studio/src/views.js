// What the page and the notebook's widget share: the automaton, the tables and the timeline. The widget is this alone.
import { picture } from "./automaton.js";
import { h } from "./dom.js";
import { eventCard, eventTable, matchTable } from "./tables.js";
import { legendOf, moment, number, timeline } from "./timeline.js";

export { eventCard, eventTable, legendOf, matchTable, moment, number, picture, timeline };

/** Show a notebook's widget: `shown` is one page of matches with what it takes to draw them, `offset` the page that is wanted. */
function render({ model, el }) {
  const chosen = { match: null, event: null };
  const root = h("div", { class: "stretto-views widget" });
  el.append(root);

  const chooseMatch = (match) => {
    Object.assign(chosen, { match: match === chosen.match ? null : match, event: null });
    draw();
  };
  const chooseEvent = (number, match) => {
    Object.assign(chosen, { match, event: number });
    draw();
  };
  const turn = (offset) => {
    model.set("offset", offset);
    model.save_changes();
  };

  function pager({ offset, matches, count, more, page }) {
    const said = count
      ? `${(offset + 1).toLocaleString("en")}–${(offset + matches.length).toLocaleString("en")} of ${more ? "more than " : ""}${count.toLocaleString("en")} matches`
      : "no matches";
    return h(
      "div",
      { class: "pager" },
      h("button", { disabled: offset === 0, onclick: () => turn(Math.max(0, offset - page)) }, "‹ before"),
      h("span", { role: "status" }, said),
      h("button", { disabled: offset + matches.length >= count, onclick: () => turn(offset + page) }, "next ›"),
    );
  }

  function draw() {
    const shown = model.get("shown");
    const { matches, events, columns, type, variables, dot, temporal, offset } = shown;
    const { match, event } = chosen;
    const numbers = matches.map((_, i) => offset + i + 1);
    const rows = matches.map((one, i) => ({ match: one, name: String(numbers[i]) })).filter((row) => row.match.rows.length);
    const values = event === null ? null : events[String(event)]?.[1];
    const width = Math.max(320, (el.clientWidth || 900) - 32);
    const places = [...root.querySelectorAll(".held")].map((one) => [one.dataset.of, one.scrollTop]);
    root.replaceChildren(
      dot ? picture(dot, new Set(Object.keys(match?.variables ?? {})), () => {}) : "",
      legendOf(variables),
      rows.length ? h("div", { class: "held", "data-of": "timeline" }, timeline({ rows, events, variables, temporal, chosen: match, event, width, onmatch: chooseMatch, onevent: chooseEvent })) : "",
      values ? eventCard({ columns, values, number: event, match, close: () => chooseEvent(null, match) }) : "",
      pager(shown),
      h("div", { class: "held", "data-of": "table" }, matchTable({ matches, numbers, variables, events, columns, type, chosen: match, onmatch: chooseMatch })),
    );
    for (const [of, place] of places) {
      const held = root.querySelector(`[data-of=${of}]`);
      if (held) held.scrollTop = place;
    }
  }

  const changed = () => {
    Object.assign(chosen, { match: null, event: null });
    draw();
  };
  model.on("change:shown", changed);
  draw();
  return () => model.off("change:shown", changed);
}

export default { render };
