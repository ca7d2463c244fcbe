// The page: what is chosen, what the server has said of it, and how both are shown.
import { ask, begin, CallError } from "./api.js";
import { at, choice, h, short } from "./dom.js";
import { makeEditor } from "./editor.js";
import { quoted } from "./language.js";
import { passedOf, Replay, replayPanel } from "./replay.js";
import { eventCard, eventTable, legendOf, matchTable, picture, timeline } from "./views.js";

const PAGE = 100;
const ON_TIMELINE = 100;
const TABS = { matches: "Matches", events: "Events", steps: "Steps", replay: "Replay", why: "Why not", explanation: "Explanation" };

const state = {
  files: [],
  topic: null, // { address, starting } of the topic that stands among the files
  kinds: {},
  keys: [], // the attributes by which the query parts the events
  data: null, // { columns, rows, more, roles, opened } of the open file
  file: null,
  valid: false,
  variables: [], // of the last query that was right
  dot: null,
  explanation: "",
  tab: "events",
  running: false,
  found: null, // the last run: count, more, variables, and one page: offset, matches, events
  page: null, // a page of events: offset, rows, at
  step: null, // the last step
  why: null, // what is in the way of a match: the query, and the answer
  reached: null, // of the steps' partial matches only those are shown whose last event is one of these
  match: null, // the match that is chosen
  event: null, // { number, values } that is chosen
};
let editor;
const replay = new Replay({
  ask: askHere,
  query: () => editor.text(),
  wrong: (error) => {
    if (error.start !== undefined) editor.mark(error);
    tell(mistake(error), true);
  },
  changed: () => {
    if (state.tab !== "replay") return;
    if (!replay.state?.matches.includes(state.match)) state.match = null;
    show();
  },
});

/** Ask something of the file that is open. */
function askHere(call, values) {
  return ask(call, { ...values, opened: state.data.opened });
}

// -- what is asked -------------------------------------------------------------------------------------------------------

async function attempt(work) {
  const { data } = state;
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    if (data === state.data) tell(mistake(error.error), true); // it was asked of the file that is open
    return undefined;
  }
}

/** A mistake in one line. */
function mistake({ message, hint, line, column }) {
  return `${line ? `line ${line}, column ${column}: ` : ""}${message}${hint ? ` — ${hint}` : ""}`;
}

function tell(text, wrong = false) {
  at("told").textContent = text;
  at("told").classList.toggle("wrong", wrong);
}

let opens = 0;
let opening = Promise.resolve();

/** Open a file: one after the other, and of those that wait the last one, so that the page shows what the server has. */
function open(file, roles) {
  opens += 1;
  const mine = opens;
  tell(`reading ${file} …`);
  const turn = () => openNow(file, roles, () => mine === opens);
  opening = opening.then(turn, turn);
  return opening;
}

async function openNow(file, roles, wanted) {
  if (!wanted()) return;
  tell(`reading ${file} …`);
  const opened = await attempt(() => ask("open", { data: file, roles }));
  if (!wanted()) return;
  if (!opened) {
    showRoles();
    return;
  }
  replay.forget();
  const other = file !== state.file;
  Object.assign(state, { data: opened, file, found: null, step: null, why: null, match: null, event: null, page: null });
  if (other && !roles.time) {
    const time = opened.columns.find(({ type }) => /^(timestamp|date)/.test(type));
    if (time) {
      await openNow(file, { ...opened.roles, time: time.name }, wanted);
      return;
    }
  }
  editor.complete(opened);
  if (!editor.text().trim()) editor.set(example(opened));
  showRoles();
  await turnTo(0);
  if (!(await check()) || !wanted()) return;
  choose(state.tab); // which begins what it shows
}

/** A query over the types that the events have. */
function example(data) {
  const types = data.columns.find(({ name }) => name === data.roles.type)?.values ?? [];
  if (types.length < 2) return "SELECT * FROM S\nWHERE S AS a ; S AS b\nWITHIN 10 EVENTS";
  const time = data.columns.find(({ name }) => name === data.roles.time);
  const within = !time ? "10 EVENTS" : /^timestamp/.test(time.type) ? "1 hour" : `10 [${quoted(time.name)}]`;
  return `SELECT * FROM S\nWHERE ${quoted(types[0])} AS a ; ${quoted(types[1])} AS b\nWITHIN ${within}`;
}

let checks = 0;
let waiting;

function checkSoon() {
  state.valid = false;
  for (const one of document.querySelectorAll(".older")) one.hidden = !isOlder();
  clearTimeout(waiting);
  waiting = setTimeout(check, 250);
}

/** Ask what is in the way of a match; an answer to an older query is dropped. */
async function askWhy() {
  const text = editor.text();
  if (state.why?.of === text || (!state.valid && !(await check()))) return;
  state.why = { of: text, answer: "looking for what was nearly a match …" };
  showPanel();
  const found = await attempt(() => askHere("why_not", { text }));
  if (state.why?.of !== text) return;
  state.why = found ? { of: text, answer: found.text } : null;
  if (state.tab === "why") showPanel();
}

/** Ask why the chosen event is in a match, or in none. */
async function askWhyEvent() {
  const { event } = state;
  if (!state.valid && !(await check())) return;
  event.why = "looking …";
  showPanel();
  const found = await attempt(() => askHere("why_event", { text: editor.text(), event: event.number }));
  event.why = found?.text;
  if (state.event === event) showPanel();
}

/** Ask whether the query is right, and what it means; an answer to an older text is dropped. */
async function check() {
  clearTimeout(waiting);
  if (!state.data) return false;
  checks += 1;
  const mine = checks;
  const text = editor.text();
  const checked = await attempt(() => askHere("check", { text }));
  if (!checked || mine !== checks) return false;
  editor.mark(checked.error);
  state.valid = !checked.error;
  at("automaton").classList.toggle("stale", !state.valid); // it is that of the last query that was right
  if (checked.error) {
    tell(mistake(checked.error), true);
    return false;
  }
  state.variables = checked.variables;
  state.keys = checked.keys;
  tell(`${checked.language.toUpperCase()}${checked.variables.length ? `, variables ${checked.variables.join(", ")}` : ""}`);
  const told = await attempt(() => Promise.all([askHere("draw", { text }), askHere("explain", { text })]));
  if (told && mine === checks) {
    if (state.dot !== told[0].dot) state.reached = null;
    state.dot = told[0].dot;
    state.explanation = told[1].text;
    showAutomaton();
    if (state.tab === "explanation") showPanel();
  }
  return true;
}

async function run() {
  if (state.running || !(await check())) return;
  replay.pause();
  state.running = true;
  showActions();
  tell("running …");
  const began = performance.now();
  const text = editor.text();
  const found = await attempt(() => askHere("run", { text }));
  state.running = false;
  showActions();
  if (!found) return;
  Object.assign(state, { found: { ...found, of: text }, step: null, match: null, event: null, tab: "matches" });
  const seconds = ((performance.now() - began) / 1000).toFixed(2);
  const count = found.count.toLocaleString("en");
  const matches = found.more ? `more than ${count} matches, of which the first are here,` : `${count} match${found.count === 1 ? "" : "es"}`;
  const events = `${state.data.rows.toLocaleString("en")} events`;
  tell([`${matches} in ${events}, ${seconds} s`, ...found.warnings].join(" — "), found.warnings.length > 0);
  show();
}

async function turnMatches(offset) {
  const page = await attempt(() => askHere("page", { offset, count: PAGE }));
  if (page) {
    Object.assign(state.found, page);
    state.match = null;
    show();
  }
}

async function turnTo(offset) {
  const page = await attempt(() => askHere("events", { offset, count: PAGE }));
  if (page) state.page = page;
  if (state.tab === "events") showPanel();
}

let steps = 0;

/** What is known after so many events. */
async function stepTo(count) {
  if (!state.data || (!state.valid && !(await check()))) return;
  const bounded = Math.max(0, Math.min(count, state.data.rows));
  steps += 1;
  const mine = steps;
  const text = editor.text();
  const step = await attempt(() => askHere("step", { text, count: bounded }));
  if (!step || mine !== steps) return;
  Object.assign(state, { step: { ...step, of: text, variables: state.variables }, match: null });
  state.event = step.count ? { number: step.count - 1, values: step.event } : null;
  show();
}

// -- what is chosen --------------------------------------------------------------------------------------------------------

function chooseMatch(match) {
  state.match = match === state.match ? null : match;
  show();
}

/** Show the partial matches that have come as far as a state. */
async function chooseState(reached) {
  state.tab = "steps";
  state.reached = reached;
  if (state.step) show();
  else await stepTo(1);
}

function partialShown() {
  const { partial } = state.step;
  return state.reached ? partial.filter(({ values }) => state.reached.includes(values.reached)) : partial;
}

function known(number) {
  const { offset = 0, rows = [] } = state.page ?? {};
  return shownEvents()[String(number)]?.[1] ?? rows[number - offset];
}

function chooseEvent(number, match = state.match) {
  state.match = match;
  state.event = { number, values: known(number) };
  show();
}

function shownEvents() {
  const from = { steps: state.step, replay: replay.state };
  return (state.tab in from ? from[state.tab] : state.found)?.events ?? {};
}

// -- what is shown ---------------------------------------------------------------------------------------------------------

function show() {
  showPanel();
  showAutomaton();
  showTimeline();
}

function showRoles() {
  const { data, file, files, topic } = state;
  const names = (data?.columns ?? []).map(({ name }) => [name, name]);
  const roles = data?.roles ?? {};
  const set = (role) => (value) => open(file, { ...roles, [role]: value });
  at("roles").replaceChildren(
    choice("file", [...(file ? [] : [["", "choose a file"]]), ...files.map((name) => [name, name === topic?.address ? `${name.slice(name.lastIndexOf("/") + 1)} (Kafka)` : name])], file ?? "", (name) => open(name, {})),
    choice("type", [["", "none"], ...names], roles.type, set("type")),
    choice("time", [["", "none"], ...names], roles.time, set("time")),
    choice("unit", ["", "s", "ms", "us", "ns"].map((unit) => [unit, unit || "—"]), roles.time_unit, set("time_unit")),
    choice("language", [["", "CEQL or SASE+"], ["ceql", "CEQL"], ["sase", "SASE+"], ["eql", "EQL"]], roles.language, set("language")),
  );
}

function showActions() {
  at("actions").replaceChildren(
    state.running
      ? h("button", { id: "cancel", onclick: () => attempt(() => ask("cancel")) }, "Cancel")
      : h("button", { id: "run", class: "main", title: "Ctrl-Enter", onclick: run }, "Run"),
    h("button", { id: "save-as", onclick: showSave }, "Save…"),
  );
}

function showAutomaton() {
  if (!state.dot) return;
  const chosen = state.match ? Object.keys(state.match.variables) : [];
  const reached = state.tab === "steps" ? (state.step?.partial ?? []).map(({ values }) => values.reached) : [];
  try {
    at("automaton").replaceChildren(picture(state.dot, new Set([...chosen, ...reached]), chooseState));
  } catch (error) {
    at("automaton").replaceChildren(h("pre", {}, state.dot)); // the graph as text, where it cannot be placed
    console.warn("the automaton could not be placed:", error);
  }
}

function showTabs() {
  const names = Object.keys(TABS);
  at("tabs").replaceChildren(
    ...names.map((name, i) =>
      h(
        "button",
        {
          role: "tab",
          id: `tab-${name}`,
          "aria-selected": name === state.tab ? "true" : "false",
          tabindex: name === state.tab ? 0 : -1,
          onclick: () => choose(name),
          onkeydown: (key) => {
            const step = { ArrowRight: 1, ArrowLeft: -1 }[key.key];
            if (!step) return;
            choose(names[(i + step + names.length) % names.length]);
            at(`tab-${state.tab}`).focus();
          },
        },
        TABS[name],
      ),
    ),
  );
}

function choose(tab) {
  if (state.tab === "steps" && tab !== "steps") state.event = null;
  state.tab = tab;
  show();
  if (tab === "steps" && state.step?.of !== editor.text()) stepTo(state.step?.count ?? 1);
  if (tab === "why") askWhy();
  if (tab === "replay") replay.beginOnce();
  else replay.pause();
}

function showPanel() {
  showTabs();
  const panels = { matches: matchesPanel, events: eventsPanel, steps: stepsPanel, replay: replayTab, why: () => [h("pre", {}, state.why?.answer ?? "")], explanation: () => [h("pre", {}, state.explanation)] };
  const parts = state.data ? panels[state.tab]() : [h("p", { class: "faint" }, "Choose a file of events.")];
  const close = () => ((state.event = null), show());
  const card = state.event?.values && eventCard({ columns: state.data.columns, ...state.event, match: state.match, onwhy: askWhyEvent, close });
  at("card").replaceChildren(...(card ? [card] : []));
  const scroll = at("panel").scrollTop;
  if (at("panel").firstChild !== parts[0]) at("panel").replaceChildren(...parts); // the replay's panel stays
  at("panel").scrollTop = scroll;
}

/** Whether what is shown was found by the query as it was before. */
function isOlder() {
  const found = state.tab === "steps" ? state.step : state.tab === "replay" ? null : state.found;
  return Boolean(found) && found.of !== editor.text();
}

/** What says so. */
function older() {
  return h("p", { class: "older faint", hidden: !isOlder() }, "These are of the query as it was before.");
}

function pager(offset, shown, count, turn, what) {
  const said = count ? `${(offset + 1).toLocaleString("en")}–${(offset + shown).toLocaleString("en")} of ${count.toLocaleString("en")} ${what}` : `no ${what}`;
  return h(
    "div",
    { class: "pager" },
    h("button", { disabled: offset === 0, onclick: () => turn(Math.max(0, offset - PAGE)) }, "‹ before"),
    h("span", {}, said),
    h("button", { disabled: offset + shown >= count, onclick: () => turn(offset + PAGE) }, "next ›"),
  );
}

function matchesPanel() {
  const { found } = state;
  if (!found) return [h("p", { class: "faint" }, "Run the query (Ctrl-Enter).")];
  const { offset, matches, events, variables, count } = found;
  const columns = state.data.columns;
  return [
    older(),
    pager(offset, matches.length, count, turnMatches, "matches"),
    count === 0 ? h("button", { id: "why-none", onclick: () => choose("why") }, "Why is there none?") : matchTable({ matches, numbers: matches.map((_, i) => offset + i + 1), variables, events, columns, type: state.data.roles.type, chosen: state.match, onmatch: chooseMatch }),
  ].filter(Boolean);
}

function eventsPanel() {
  if (!state.page) return [];
  const { offset, rows } = state.page;
  const numbers = rows.map((_, i) => offset + i);
  const held = new Set(state.match?.rows ?? []);
  return [
    pager(offset, rows.length, state.data.rows, turnTo, "events"),
    sampled(),
    eventTable({ columns: state.data.columns, first: [...state.keys, state.data.roles.time], numbers, rows, chosen: state.event?.number, held, onevent: (number) => chooseEvent(number) }),
  ].filter(Boolean);
}

/** Which events the sample does not have. */
function sampled() {
  const { topic, file, data } = state;
  const which = topic?.address !== file ? "first of the file" : `${topic.starting === "latest" ? "last" : "first"} of the topic`;
  const said = [...(data.more ? [`these are the ${which}`] : []), ...passedOf(data.passed ?? {})];
  return said.length ? h("p", { id: "sampled", class: "faint" }, said.join(" · ")) : null;
}

function stepsPanel() {
  const { step } = state;
  if (!step) return [h("p", { class: "faint" }, "Events are read one by one here: ← and → step back and on.")];
  const { events, count } = step;
  const columns = state.data.columns;
  const numbers = Array.from({ length: Math.max(step.matches.length, step.partial.length) }, (_, i) => i + 1);
  const common = { numbers, events, columns, type: state.data.roles.type, chosen: state.match, onmatch: chooseMatch };
  const variables = [...new Set([...step.matches, ...step.partial].flatMap((match) => Object.keys(match.variables)))];
  const go = (to) => h("button", { onclick: () => stepTo(to.at), disabled: to.at < 0 || to.at > state.data.rows, id: to.id, title: to.title }, to.text);
  const partial = partialShown();
  const all = h("button", { id: "all", onclick: () => ((state.reached = null), show()) }, "show all");
  return [
    h(
      "div",
      { class: "pager" },
      go({ id: "first", at: 0, text: "|← start", title: "before the first event (Home)" }),
      go({ id: "back", at: count - 1, text: "← back", title: "one event back (←)" }),
      h("label", {}, "events read ", h("input", { id: "count", type: "number", min: 0, max: state.data.rows, value: count, onchange: (change) => stepTo(Number(change.target.value) || 0) })),
      go({ id: "on", at: count + 1, text: "on →", title: "one event on (→)" }),
    ),
    older(),
    h("h2", {}, `${step.completed} match${step.completed === 1 ? "" : "es"} completed by this event`),
    step.matches.length ? matchTable({ ...common, matches: step.matches, variables }) : null,
    h(
      "h2",
      {},
      step.refused ? "partial matches" : `${step.waiting} partial match${step.waiting === 1 ? "" : "es"}`,
      state.reached ? [`, ${partial.length} of those shown at this state `, all] : null,
    ),
    step.refused ? h("p", { class: "faint" }, step.refused) : null,
    partial.length ? matchTable({ ...common, matches: partial, variables }) : null,
  ].filter(Boolean);
}

function replayTab() {
  return replayPanel(replay, {
    temporal: temporal(),
    events: state.data.rows,
    topic: state.topic?.address === state.file,
    edit: (text) => editor.set(text),
    table: ({ matches, numbers, variables }) =>
      matchTable({ matches, numbers, variables, events: replay.state.events, columns: state.data.columns, type: state.data.roles.type, chosen: state.match, onmatch: chooseMatch }),
  });
}

/** Whether places on the axis are milliseconds. */
function temporal() {
  const time = state.data?.columns.find(({ name }) => name === state.data.roles.time);
  return Boolean(time) && /^(timestamp|date)/.test(time.type);
}

/** The rows of the timeline. */
function lines() {
  if (state.tab === "replay") return (replay.state?.matches ?? []).map((match) => ({ match, name: short(match.values.pattern, 7) }));
  if (state.tab === "steps" && state.step) {
    return [
      ...state.step.matches.map((match, i) => ({ match, name: String(i + 1) })),
      ...partialShown().map((match) => ({ match, name: "…", partial: true })),
    ];
  }
  return (state.found?.matches ?? []).slice(0, ON_TIMELINE).map((match, i) => ({ match, name: String(state.found.offset + i + 1) }));
}

function showTimeline() {
  const rows = lines();
  const placed = rows.filter(({ match }) => match.rows.length); // counts over all matches have no events
  if (!placed.length) {
    at("timeline").replaceChildren(h("p", { class: "faint" }, "Matches stand here on the axis of time."));
    return;
  }
  const found = { steps: state.step, replay: null };
  const ofQuery = (state.tab in found ? found[state.tab] : state.found)?.variables ?? []; // whose colours stay
  const variables = [...new Set([...ofQuery, ...rows.flatMap(({ match }) => Object.keys(match.variables))])];
  at("timeline").replaceChildren(
    older(),
    legendOf(variables),
    timeline({
      rows: placed,
      events: shownEvents(),
      variables,
      temporal: temporal(),
      chosen: state.match,
      event: state.event?.number,
      width: Math.max(320, at("timeline").clientWidth - 24),
      onmatch: chooseMatch,
      onevent: chooseEvent,
    }),
  );
}

// -- saving ----------------------------------------------------------------------------------------------------------------

function showSave() {
  const dialog = at("save");
  const text = h("pre", {});
  const told = h("p", { role: "status" });
  const name = h("input", { id: "save-name", "aria-label": "File name", value: "query.toml" });
  const replace = h("input", { type: "checkbox", id: "save-replace" });
  const kind = h("select", { id: "save-kind", "aria-label": "Kind" }, Object.keys(state.kinds).map((one) => h("option", {}, one)));
  const save = async (named) => {
    try {
      const made = await askHere("save", { kind: kind.value, text: editor.text(), name: named, replace: replace.checked });
      text.textContent = made.text;
      told.textContent = made.name ? `saved as ${made.name}` : "";
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      told.textContent = error.message;
    }
  };
  kind.addEventListener("change", () => {
    name.value = name.value.replace(/\.\w+$/, "") + state.kinds[kind.value];
    save("");
  });
  dialog.replaceChildren(
    h("h2", {}, "Save the query"),
    h("p", {}, "as ", kind, " in the folder: ", name, h("label", {}, replace, " replace")),
    text,
    told,
    h("div", { class: "buttons" }, h("button", { class: "main", id: "save-now", onclick: () => save(name.value) }, "Save"), h("button", { id: "save-close", onclick: () => dialog.close() }, "Close")),
  );
  dialog.showModal();
  save("");
}

// -- the beginning ---------------------------------------------------------------------------------------------------------

function stepByKey(key) {
  if (state.tab !== "steps" || !state.step || key.altKey || key.ctrlKey || key.metaKey) return;
  if (key.target.closest(".cm-editor, input, select, [role=tab], dialog")) return;
  const to = { ArrowRight: state.step.count + 1, ArrowLeft: state.step.count - 1, Home: 0 }[key.key];
  if (to === undefined) return;
  key.preventDefault();
  stepTo(to);
}

async function start() {
  editor = makeEditor(at("editor"), checkSoon, () => (state.tab === "replay" ? replay.put() : run()));
  document.addEventListener("keydown", stepByKey);
  window.addEventListener("resize", showTimeline);
  window.addEventListener("pagehide", () => replay.forget());
  showActions();
  show();
  const given = await attempt(begin);
  if (!given) return;
  Object.assign(state, { files: given.files, topic: given.topic, kinds: given.kinds });
  showRoles();
  const first = given.data ?? given.files[0];
  if (first) await open(first, given.roles);
  else tell("there are no events in this folder: no file ends in .parquet, .csv, .json, .jsonl or .arrow", true);
}

start();
