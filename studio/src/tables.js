// Events and matches as tables.
import { h, short } from "./dom.js";
import { variableOf } from "./timeline.js";

function rowOf(chosen, cells, onchoose, number) {
  const choose = () => onchoose();
  return h(
    "tr",
    {
      class: chosen ? "chosen" : "",
      tabindex: 0,
      "data-number": number,
      "aria-selected": chosen ? "true" : "false",
      onclick: choose,
      onkeydown: (key) => {
        const next = key.key === "ArrowDown" ? "nextElementSibling" : key.key === "ArrowUp" ? "previousElementSibling" : null;
        if (next) {
          key.preventDefault();
          key.currentTarget[next]?.focus();
        } else if (key.key === "Enter" || key.key === " ") {
          key.preventDefault();
          choose();
        }
      },
    },
    cells.map((cell) => (cell instanceof Node ? cell : h("td", {}, cell))),
  );
}

function table(head, rows) {
  return h(
    "table",
    {},
    h("thead", {}, h("tr", {}, head.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, rows),
  );
}

/** A value of an event: NULL is no empty text. */
function shown(value, most) {
  return value === null ? h("span", { class: "faint" }, "NULL") : short(value, most);
}

/** The numbers of columns, those of keys and of the time first. */
function inOrder(columns, first) {
  const place = ({ name }) => (first.includes(name) ? first.indexOf(name) : first.length);
  return columns.map((_, i) => i).sort((one, other) => place(columns[one]) - place(columns[other]));
}

/** Rows of events: `numbers` are theirs, `rows` their values; the columns `first` stand first. */
export function eventTable({ columns, numbers, rows, chosen, held, onevent, first = [] }) {
  const order = inOrder(columns, first);
  return table(
    ["", ...order.map((i) => columns[i].name)],
    rows.map((values, i) =>
      rowOf(
        numbers[i] === chosen,
        [h("td", { class: `number ${held?.has(numbers[i]) ? "held" : ""}` }, String(numbers[i])), ...order.map((at) => h("td", {}, shown(values[at])))],
        () => onevent(numbers[i]),
        numbers[i],
      ),
    ),
  );
}

/** Rows of matches with their numbers, each with the events of its variables. */
export function matchTable({ matches, numbers, variables, events, columns, type, chosen, onmatch }) {
  const named = [...new Set(matches.flatMap((match) => Object.keys(match.values)))];
  const isFirst = (name) => /^(start|end)_time$/.test(name) || columns.some((column) => column.name === name);
  const [first, values] = [named.filter(isFirst), named.filter((name) => !isFirst(name))];
  const seen = variables.filter((name) => matches.some((match) => name in match.variables));
  const columnsOf = seen.length ? seen : matches.some((match) => match.rows.length) ? ["events"] : [];
  const held = (match, name) => (seen.length ? (match.variables[name] ?? []) : match.rows);
  const shownOf = (values) => values.filter((one, i) => one !== null && columns[i].name !== type);
  const event = (row) => shownOf(events[String(row)]?.[1] ?? []).map((one) => short(one, 26)).join("  ");
  const cell = (match, name) => {
    const rows = held(match, name);
    const parts = rows.slice(0, 3).map((row) => h("div", { class: "held-event", title: event(row) }, event(row)));
    if (rows.length > 3) parts.push(h("div", { class: "faint" }, `… ${rows.length - 3} more`));
    return h("td", {}, parts);
  };
  return table(
    ["", ...first, ...columnsOf, ...values],
    matches.map((match, i) =>
      rowOf(
        match === chosen,
        [
          h("td", { class: "number" }, String(numbers[i])),
          ...first.map((name) => short(match.values[name])),
          ...columnsOf.map((name) => cell(match, name)),
          ...values.map((name) => short(match.values[name])),
        ],
        () => onmatch(match),
        numbers[i],
      ),
    ),
  );
}

/** One event: each column with its value, what it is in the match and, where `onwhy` can ask, why it is in one or in none. */
export function eventCard({ columns, values, number, match, why, onwhy, close }) {
  const variable = match && variableOf(match, number);
  const held = match?.rows.includes(number);
  const said = variable ? `, in the match as ${variable}` : match ? (held ? ", in the match" : ", not in the match") : "";
  return h(
    "aside",
    { class: "card", "aria-label": "Event" },
    h("button", { class: "close", "aria-label": "Close", onclick: close }, "×"),
    h("h2", {}, `event ${number}${said}`),
    h("dl", {}, columns.flatMap((column, i) => [h("dt", {}, column.name), h("dd", {}, shown(values[i], 200))])),
    !onwhy ? null : why ? h("pre", { class: "why", role: "status" }, why) : h("button", { id: "why-event", onclick: onwhy }, "Why is it in a match, or in none?"),
  );
}
