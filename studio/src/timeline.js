// Matches on the axis of time: a line for each match, its events as dots in the colours of their variables.
import { h, s, short } from "./dom.js";

const ROW = 22;
const TOP = 34;
const SIDE = 14;
const NUMBERS = 48;

let made = 0; // a notebook may show many, and their ids must differ

/** Which colour each variable has. */
export function legendOf(variables) {
  const keys = [...coloursOf(variables)].map(([name, colour]) => {
    const key = h("span", { class: "key" }, name);
    key.style.setProperty("--own", colour);
    return key;
  });
  return h("div", { class: "legend" }, keys);
}

/** The variables of matches, in order, each with its colour. */
function coloursOf(variables) {
  return new Map(variables.map((name, number) => [name, `var(--colour${number % 8})`]));
}

function placeOf(events, row) {
  return events[String(row)]?.[0] ?? row;
}

/** The variable that holds an event of a match; where that is not known, none. */
export function variableOf(match, row) {
  return Object.keys(match.variables).find((name) => match.variables[name].includes(row));
}

function marks(low, high, width, temporal) {
  const count = Math.max(2, Math.floor(width / 150));
  return Array.from({ length: count }, (_, i) => {
    const at = low + ((high - low) * i) / (count - 1);
    return { share: i / (count - 1), label: temporal ? moment(at, high - low) : number(at, high - low) };
  });
}

/** A time on the axis, as exactly as a span needs it. */
export function moment(at, span) {
  const text = new Date(at).toISOString();
  if (span > 3 * 86_400_000) return text.slice(0, 10);
  if (span > 10 * 60_000) return text.slice(5, 16).replace("T", " ");
  return text.slice(11, span > 10_000 ? 19 : 23);
}

/** A number on the axis, likewise. */
export function number(at, span) {
  return span >= 10 ? Math.round(at).toLocaleString("en") : Number(at.toPrecision(6)).toString();
}

/**
 * The picture of some matches.
 *
 * `rows`: [{ match, name, partial }]; `events`: [place, values] by number; `variables` in the order of their colours; `temporal`: places are milliseconds;
 * `chosen`: the match that is emphasised; `event`: the number of the event that is; `onmatch`, `onevent`: called with what is clicked.
 */
export function timeline({ rows, events, variables, temporal, chosen, event, width, onmatch, onevent }) {
  const colours = coloursOf(variables);
  const placesOf = (match) => match.rows.map((row) => placeOf(events, row));
  const all = rows.flatMap(({ match }) => placesOf(match));
  const seen = chosen ? placesOf(chosen) : all; // the match that is chosen fills the axis
  let [low, high] = [Math.min(...seen), Math.max(...seen)];
  if (low === high) [low, high] = [Math.min(...all, low - 1), Math.max(...all, high + 1)];
  else if (chosen) [low, high] = [low - (high - low) / 10, high + (high - low) / 10];
  const inner = width - NUMBERS - 2 * SIDE;
  const x = (place) => NUMBERS + SIDE + ((place - low) / (high - low)) * inner;
  const height = TOP + rows.length * ROW + 12;
  const axis = marks(low, high, inner, temporal).map(({ share, label }) => {
    const at = NUMBERS + SIDE + share * inner;
    const anchor = share === 0 ? "start" : share === 1 ? "end" : "middle";
    return s(
      "g",
      { class: "axis" },
      s("line", { x1: at, x2: at, y1: TOP - 10, y2: height }),
      s("text", { x: at, y: 14, "text-anchor": anchor }, label),
    );
  });
  made += 1;
  const axisId = `stretto-axis-${made}`;
  const clip = s("clipPath", { id: axisId }, s("rect", { x: NUMBERS, y: 0, width: width - NUMBERS, height }));
  const lines = rows.map(({ match, name, partial }, number) => {
    const y = TOP + number * ROW + ROW / 2;
    const at = match.rows.map((row) => x(placeOf(events, row)));
    const [first, last] = [Math.min(...at), Math.max(...at)];
    const away = last < NUMBERS ? [NUMBERS + 6, "‹"] : first > width ? [width - SIDE, "›"] : null; // the axis does not reach it
    const dots = match.rows.map((row, place) => {
      const variable = variableOf(match, row);
      const title = `${variable ?? "event"}: ${(events[String(row)]?.[1] ?? []).map((value) => short(value, 40)).join("  ")}`;
      return s(
        "circle",
        {
          class: `event ${row === event ? "chosen" : ""}`,
          cx: at[place],
          cy: y,
          r: row === event ? 7 : 5,
          fill: colours.get(variable) ?? "var(--faint)",
          "data-row": row,
          onclick: (click) => (click.stopPropagation(), onevent(row, match)),
        },
        s("title", {}, title),
      );
    });
    return s(
      "g",
      { class: `match ${match === chosen ? "chosen" : ""} ${partial ? "partial" : ""}`, onclick: () => onmatch(match) },
      s("rect", { class: "row", x: 0, y: y - ROW / 2, width, height: ROW }),
      s("text", { x: NUMBERS - 6, y: y + 4, "text-anchor": "end" }, name),
      s("g", { "clip-path": `url(#${axisId})` }, s("line", { class: "span", x1: first, x2: last, y1: y, y2: y }), dots),
      away && s("text", { class: "away", x: away[0], y: y + 4 }, away[1]),
    );
  });
  return s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "timeline of matches" }, clip, axis, lines);
}
