// A replay: the events of the sample come again in the order of their times, or those of a file come as it grows, while patterns are put
// in, replaced and taken out.
import { ask, CallError } from "./api.js";
import { choice, h } from "./dom.js";
import { moment, number } from "./views.js";

const TICK = 150; // milliseconds between two questions
const PACES = [
  ["10", "all in 10 s"],
  ["30", "all in 30 s"],
  ["120", "all in 2 min"],
  ["600", "all in 10 min"],
];

/**
 * The replay of this page. The server reads events when it is asked, as far as the clock here has come.
 *
 * `ask`: makes a call about the open file; `query`: gives the text of the editor; `wrong`: is told of mistakes; `changed`: is called when
 * there is something to show.
 */
export class Replay {
  constructor({ ask: askHere, query, wrong, changed }) {
    Object.assign(this, { askHere, query, wrong, changed });
    this.pace = "30";
    this.name = "p1";
    this.forget();
  }

  /** End it, also at the server. */
  forget() {
    if (this.state) ask("end_replay", { replay: this.state.replay }, true).catch(() => {});
    Object.assign(this, { source: "sample", disorder: "", state: null, playing: false, clock: null, refused: null, view: null });
  }

  async attempt(work) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      this.playing = false;
      this.wrong(error.error);
      if (!this.state) this.refused = error.message;
      this.changed();
      return undefined;
    }
  }

  /** Begin, if it has not begun. */
  async beginOnce() {
    if (!this.state) await this.begin();
  }

  /** Begin anew, with the patterns that are in it, at first with the query of the editor. */
  async begin() {
    const patterns = Object.fromEntries((this.state?.patterns ?? [{ name: this.name, text: this.query() }]).filter(({ text }) => text).map(({ name, text }) => [name, text]));
    this.playing = false;
    const begun = await this.attempt(() => this.askHere("begin_replay", { patterns, live: this.source === "live", disorder: this.disorder }));
    if (begun) this.take({ ...begun, late: false }, begun.span?.[0]);
    return Boolean(begun);
  }

  /** Begin anew with other events, or with another disorder. */
  async beginWith(values) {
    const { source, disorder } = this;
    Object.assign(this, values);
    if (await this.begin()) return;
    Object.assign(this, { source, disorder });
    await this.begin(); // the one before was ended; what is wrong stays told
  }

  take(answer, clock = this.clock) {
    this.clock = answer.late ? answer.at : clock;
    if (answer.ended || answer.live?.broken) this.playing = false;
    const said = JSON.stringify(answer);
    if (said === this.said && this.playing) return; // nothing is drawn anew under somebody's pointer
    const old = answer.replay ? null : this.state;
    // A match that was there stays the same object, so that it stays chosen.
    const matches = answer.matches.map((match, i) => old?.matches[old.count - answer.count + i] ?? match);
    Object.assign(this, { said, state: { replay: this.state?.replay, ...answer, matches }, refused: null });
    this.changed();
  }

  async read(upTo, more) {
    const { replay } = this.state;
    const found = await this.attempt(() => this.askHere("read_on", { up_to: upTo, more, replay }));
    if (found && this.state?.replay === replay) this.take(found, more ? found.at : upTo);
    return found;
  }

  /** Read the next event. */
  async step() {
    this.playing = false;
    if (this.state) await this.read(this.state.at ?? -Number.MAX_VALUE, 1);
  }

  /** End a live stream, so that what waits comes. */
  async end() {
    const { replay } = this.state;
    const found = await this.attempt(() => this.askHere("end_live", { replay }));
    if (found && this.state?.replay === replay) this.take(found);
  }

  pause() {
    if (this.playing) {
      this.playing = false;
      this.changed();
    }
  }

  /** Let the clock go until the end, or until it is paused. */
  async play() {
    if (this.playing || !(this.state?.span || this.state?.live)) return;
    this.playing = true;
    this.changed();
    let then = performance.now();
    while (this.playing) {
      await new Promise((resolve) => setTimeout(resolve, TICK));
      if (!this.playing) return;
      const now = performance.now();
      const clock = this.state.live ? Number.MAX_VALUE : this.clockAfter(now - then);
      then = now;
      if (!(await this.read(clock, 0))) return;
    }
  }

  /** How far the clock of a sample has come after some milliseconds. */
  clockAfter(passed) {
    const [low, high] = this.state.span;
    const pace = this.pace === "real" ? 1 : (high - low) / (1000 * Number(this.pace)); // of places, in a millisecond
    return Math.min(high, Math.max(this.clock, low) + passed * pace);
  }

  /** Let the query of the editor be the pattern from now on. */
  async put(name = this.name, text = this.query()) {
    if (!this.state) return;
    const { replay } = this.state;
    const found = await this.attempt(() => this.askHere("put_pattern", { name, text, replay }));
    if (found && this.state?.replay === replay) this.take({ ...found, late: false });
  }
}

/** The replay's panel, which stays while what it shows changes; `table` makes a table of matches, `edit` puts a text into the editor. */
export function replayPanel(replay, options) {
  if (!replay.state) return [h("p", { class: "faint" }, replay.refused ?? "The events are replayed here, while patterns change.")];
  replay.view ??= makeView(replay, options);
  replay.view.update();
  return [replay.view.root];
}

function makeView(replay, { temporal, events, topic, edit, table }) {
  const play = h("button", { id: "play", class: "main", onclick: () => (replay.playing ? replay.pause() : replay.play()) });
  const next = h("button", { id: "next", title: "the next event", onclick: () => replay.step() }, "on →");
  const end = h("button", { id: "end", title: "what waits comes, and nothing else", onclick: () => replay.end() }, "End");
  const disorder = h("input", { id: "disorder", autocomplete: "off", placeholder: "none", value: replay.disorder, onchange: () => replay.beginWith({ disorder: disorder.value }) });
  const sources = [
    ["sample", "of the sample"],
    ["live", topic ? "of the topic as they come" : "of the file as it grows"],
  ];
  const source = choice("events", sources, replay.source, (chosen) => replay.beginWith({ source: chosen }));
  const pace = choice("pace", temporal ? [...PACES, ["real", "as it happened"]] : PACES, replay.pace, (chosen) => (replay.pace = chosen));
  const ofSample = [pace];
  const ofLive = [h("label", { title: "how late an event may be: 5 seconds, or a number of the time" }, "late by ", disorder), end];
  const progress = h("progress", { max: Math.max(1, events), "aria-label": "events read" });
  const reached = h("span", { id: "reached" });
  const passed = h("p", { id: "passed", role: "status" });
  const put = h("button", { id: "put", title: "Ctrl-Enter: the query holds from the next time on", onclick: () => replay.put() });
  const name = h("input", { id: "pattern", "aria-label": "Name of the pattern", oninput: () => ((replay.name = name.value), update()) });
  const patterns = h("div", {});
  const matches = h("div", {});
  const root = h(
    "div",
    {},
    h(
      "div",
      { class: "pager" },
      source,
      h("button", { id: "begin", title: "from the first event on, with these patterns", onclick: () => replay.begin() }, "|← start"),
      play,
      next,
      ...ofSample,
      ...ofLive,
      progress,
      reached,
    ),
    passed,
    h("div", { class: "pager" }, h("label", {}, "pattern ", name), put),
    patterns,
    matches,
  );

  function update() {
    const { state, playing } = replay;
    const [low, high] = state.span ?? [0, 0];
    const at = state.read ? `${temporal ? moment(state.at, high - low) : number(state.at, high - low)}, ` : "";
    play.textContent = playing ? "Pause" : "Play";
    play.disabled = next.disabled = end.disabled = state.ended;
    for (const one of [...ofSample, progress]) one.hidden = Boolean(state.live);
    for (const one of ofLive) one.hidden = !state.live;
    source.querySelector("select").value = replay.source;
    if (document.activeElement !== disorder) disorder.value = replay.disorder;
    progress.value = state.read;
    reached.textContent = `${at}${state.read.toLocaleString("en")} ${state.live ? "" : `of ${events.toLocaleString("en")} `}events`;
    const said = toldOf(state);
    if (passed.textContent !== said) passed.textContent = said;
    passed.hidden = !said;
    passed.classList.toggle("wrong", Boolean(state.live?.broken));
    if (name.value !== replay.name) name.value = replay.name;
    put.textContent = state.patterns.some((one) => one.name === replay.name && one.text) ? "Replace by the query" : "Put the query in";
    const focused = patterns.contains(document.activeElement) ? document.activeElement.id : null;
    patterns.replaceChildren(patternTable(replay, edit) ?? "");
    if (focused) document.getElementById(focused)?.focus(); // it was drawn anew
    const row = matches.contains(document.activeElement) ? document.activeElement.dataset.number : null;
    const variables = [...new Set(state.matches.flatMap((match) => Object.keys(match.variables)))];
    const numbers = state.matches.map((_, i) => state.count - i);
    matches.replaceChildren(
      h("h2", {}, `${state.count.toLocaleString("en")} match${state.count === 1 ? "" : "es"}${state.count > 1 ? ", the newest first" : ""}`),
      state.matches.length ? table({ matches: state.matches, numbers, variables }) : "",
    );
    if (row) matches.querySelector(`[data-number="${row}"]`)?.focus();
  }
  return { root, update };
}

/** How many events were not read, and why. */
export function passedOf({ held, late, untimed, bad, why }) {
  const counts = [
    [held, "held until none earlier can come"],
    [late, "too late, passed over"],
    [untimed, "without a time, passed over"],
    [bad, `that cannot be read, passed over: ${why}`],
  ];
  return counts.filter(([count]) => count).map(([count, what]) => `${count.toLocaleString("en")} ${what}`);
}

/** What a live stream has to say. */
function toldOf({ live, ended }) {
  if (!live) return "";
  const { waiting, broken } = live;
  const said = passedOf(live);
  if (waiting) said.push(waiting);
  if (broken) said.push(`the stream has broken off: ${broken}`);
  else if (ended) said.push("the stream has ended");
  return said.join(" · ");
}

function patternTable(replay, edit) {
  const { patterns } = replay.state;
  if (!patterns.length) return null;
  const choose = ({ name, text }) => {
    replay.name = name;
    edit(text);
    replay.changed();
  };
  const row = (one) =>
    h(
      "tr",
      { class: one.text ? "" : "faint" },
      h("td", { class: "name", title: one.name }, one.name),
      h("td", { class: "number" }, one.count.toLocaleString("en")),
      h(
        "td",
        {},
        one.text
          ? [
              h("button", { id: `edit-${one.name}`, "aria-label": `Edit ${one.name}`, onclick: () => choose(one) }, "Edit"),
              " ",
              h("button", { id: `out-${one.name}`, "aria-label": `Take ${one.name} out`, onclick: () => replay.put(one.name, "") }, "Take out"),
            ]
          : null,
      ),
      h("td", { class: "query", title: one.text }, one.stopped ?? (one.text ? one.text.replace(/\s+/g, " ") : "taken out")),
    );
  return h(
    "table",
    { class: "patterns" },
    h("thead", {}, h("tr", {}, ["pattern", "matches", "", "query"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, patterns.map(row)),
  );
}
