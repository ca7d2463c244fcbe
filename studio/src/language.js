// How a query is coloured and completed. The server alone knows what a query means.
import { StreamLanguage } from "@codemirror/language";
import { KEYWORDS } from "./keywords.js";

export const UNITS = ["second", "minute", "hour", "day", "millisecond"].flatMap((unit) => [unit, `${unit}s`]);

/** The keywords of a language; of one that is not said, those of CEQL and SASE+. */
export function keywords(language) {
  const text = KEYWORDS[language] ?? `${KEYWORDS.ceql} ${KEYWORDS.sase}`;
  return [...new Set(text.split(" "))];
}

const ALL = new Set(Object.values(KEYWORDS).join(" ").split(" ").map((word) => word.toUpperCase()));

/** Words, constants and comments, which are alike in all languages. */
export const queryLanguage = StreamLanguage.define({
  startState: () => ({ quote: null, comment: false, number: false }),
  token(stream, state) {
    if (state.comment) {
      state.comment = !stream.skipTo("*/");
      if (state.comment) stream.skipToEnd();
      else stream.match("*/");
      return "comment";
    }
    if (state.quote) {
      const quote = state.quote;
      if (stream.skipTo(quote)) {
        stream.next();
        state.quote = null;
      } else stream.skipToEnd();
      return quote === "`" ? "variableName" : "string";
    }
    if (stream.eatSpace()) return null;
    const behindNumber = state.number; // where `hours` is a unit
    state.number = false;
    if (stream.match("--")) {
      stream.skipToEnd();
      return "comment";
    }
    if (stream.match("/*")) {
      state.comment = true;
      return "comment";
    }
    const character = stream.next();
    if (`'"\``.includes(character)) {
      state.quote = character;
      return character === "`" ? "variableName" : "string";
    }
    if (/[0-9]/.test(character)) {
      stream.eatWhile(/[0-9._eE]/);
      state.number = true;
      return "number";
    }
    if (/[\p{L}_]/u.test(character)) {
      stream.eatWhile(/[\p{L}\p{N}_]/u);
      const word = stream.current();
      const known = ALL.has(word.toUpperCase()) || (behindNumber && UNITS.includes(word.toLowerCase()));
      return known ? "keyword" : "variableName";
    }
    return /[-+*/=<>!;:~|?]/.test(character) ? "operator" : "punctuation";
  },
  languageData: { commentTokens: { line: "--" }, closeBrackets: { brackets: ["(", "[", "{", "'", '"', "`"] } },
});

/** A name as a query writes it. */
export function quoted(name) {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !ALL.has(name.toUpperCase()) ? name : `\`${name}\``;
}

/** Completions from the columns of the events: names with types, event types, and in quotes the texts of columns. */
export function completions(data) {
  return (context) => {
    const text = context.matchBefore(/'[^'\n]*/);
    if (text && quotesBefore(context, text) % 2 === 0) {
      const options = data.columns.flatMap((column) =>
        column.values.map((value) => ({ label: value.replaceAll("'", "''"), detail: column.name, type: "text" })),
      );
      return { from: text.from + 1, options, validFor: /^[^'\n]*$/ };
    }
    const word = context.matchBefore(/[\p{L}\p{N}_]+/u);
    if (!word && !context.explicit && !context.matchBefore(/[[(.]/)) return null;
    const inside = isInBrackets(context.state.sliceDoc(0, context.pos));
    const types = inside ? [] : (data.columns.find((column) => column.name === data.roles.type)?.values ?? []);
    const options = [
      ...data.columns.map(({ name, type }) => ({ label: name, apply: quoted(name), detail: type, type: "property", boost: 2 })),
      ...types.map((name) => ({ label: name, apply: quoted(name), detail: "event type", type: "class", boost: 1 })),
      ...keywords(data.roles.language).map((label) => ({ label, type: "keyword" })),
      ...UNITS.map((label) => ({ label, type: "keyword", boost: -1 })),
    ];
    return { from: word ? word.from : context.pos, options, validFor: /^[\p{L}\p{N}_]*$/u };
  };
}

/** Whether a text ends inside of `[…]`, where an event is asked for its attributes. */
export function isInBrackets(text) {
  let depth = 0;
  for (const [part] of text.matchAll(/--[^\n]*|\/\*[^]*?(?:\*\/|$)|'[^']*(?:'|$)|"[^"]*(?:"|$)|`[^`]*(?:`|$)|[[\]]/g)) {
    if (part === "[") depth += 1;
    else if (part === "]") depth = Math.max(0, depth - 1);
  }
  return depth > 0;
}

function quotesBefore(context, text) {
  const line = context.state.doc.lineAt(text.from);
  return context.state.sliceDoc(line.from, text.from).split("'").length - 1;
}
