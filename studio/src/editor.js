// The editor of the query: colours, completion, and the mistake under its place.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { lintKeymap, setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { completions, queryLanguage } from "./language.js";

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--keyword)", fontWeight: "600" },
  { tag: tags.string, color: "var(--string)" },
  { tag: tags.number, color: "var(--number)" },
  { tag: tags.comment, color: "var(--faint)", fontStyle: "italic" },
  { tag: tags.operator, color: "var(--operator)" },
]);

/** An editor in an element; `changed` is called with each new text, `run` by Ctrl-Enter. */
export function makeEditor(parent, changed, run) {
  const completing = new Compartment();
  const view = new EditorView({
    parent,
    state: EditorState.create({
      extensions: [
        keymap.of([
          { key: "Mod-Enter", run: () => (run(), true) },
          ...closeBracketsKeymap,
          ...completionKeymap,
          ...lintKeymap,
          ...historyKeymap,
          ...defaultKeymap,
        ]),
        lineNumbers(),
        history(),
        drawSelection(),
        highlightActiveLine(),
        bracketMatching(),
        closeBrackets(),
        queryLanguage,
        syntaxHighlighting(colours),
        completing.of([]),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": "Query" }),
        EditorView.updateListener.of((update) => update.docChanged && changed(update.state.doc.toString())),
      ],
    }),
  });
  return {
    view,
    text: () => view.state.doc.toString(),
    focus: () => view.focus(),
    set: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
    complete: (data) =>
      view.dispatch({ effects: completing.reconfigure(autocompletion({ override: [completions(data)], icons: false })) }),
    mark: (error) => view.dispatch(setDiagnostics(view.state, error ? [diagnostic(view, error)] : [])),
  };
}

function diagnostic(view, error) {
  const text = view.state.doc.toString();
  const placed = error.start !== undefined;
  const length = text.length;
  let from = placed ? units(text, error.start) : 0;
  const to = Math.min(length, Math.max(placed ? units(text, error.end) : length, from + 1));
  if (from >= to) from = Math.max(0, to - 1); // behind the last character: it stands under that one
  return { from, to, severity: "error", message: error.hint ? `${error.message}\nhint: ${error.hint}` : error.message };
}

/** An offset in characters, as the server counts, in the units of JavaScript's strings. */
function units(text, characters) {
  let at = 0;
  for (let count = 0; count < characters && at < text.length; count += 1) at += text.codePointAt(at) > 0xffff ? 2 : 1;
  return at;
}
