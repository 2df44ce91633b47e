/**
 * @file The editor: CodeMirror with TypeScript's syntax, the names of the library, and the errors of our checks. An
 * error is marked at its line and told in whole below it; one without a line is the page's to show.
 *
 *   14 │   const h1 = x.matmul(p.w1).gelu();
 * ● 15 │   const h2 = p.w2.matmul(x);
 *      │   ShapeMismatch: …               a block of the editor, as wide as it is
 */
import {
  acceptCompletion,
  autocompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { javascriptLanguage, localCompletionSource, typescriptLanguage } from "@codemirror/lang-javascript";
import { bracketMatching, indentOnInput, indentUnit, LanguageSupport, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { type EditorState, type Extension, StateEffect, StateField, type Text } from "@codemirror/state";
import {
  Decoration,
  type DecorationSet,
  drawSelection,
  EditorView,
  highlightActiveLine,
  keymap,
  lineNumbers,
  WidgetType,
} from "@codemirror/view";
import { h } from "../../view/page/dom.ts";
import type { Complaint } from "../complaint.ts";
import { importEdit, type Offer, offersAt } from "../complete.ts";
import { COMPLETIONS } from "../completion-list.ts";
import { editorTheme, highlightStyle } from "./editor-theme.ts";

export interface Editor {
  readonly element: HTMLElement;
  text(): string;
  /** Replaces the text, which can be undone. */
  set(text: string): void;
  /** Shows an error at its line. */
  complain(complaint: Complaint | null): void;
  /** Marks the source line of the selection. */
  mark(line: number | null): void;
}

/** The shown error, and the line that the page's selection comes from. */
interface Notes {
  readonly complaint: Complaint | null;
  readonly marked: number | null;
}

const NONE: Notes = { complaint: null, marked: null };
const noted = StateEffect.define<Partial<Notes>>();

/** The text of an error, below its line. */
class Message extends WidgetType {
  readonly text: string;

  constructor(text: string) {
    super();
    this.text = text;
  }

  override eq(other: Message): boolean {
    return other.text === this.text;
  }

  override toDOM(): HTMLElement {
    // The page says it aloud.
    return h("div", { class: "cm-message", "aria-hidden": "true" }, this.text);
  }

  override ignoreEvent(): boolean {
    return false;
  }
}

const lineAt = (doc: Text, number: number | null) =>
  number !== null && number >= 1 && number <= doc.lines ? doc.line(number) : null;

function decorationsOf(doc: Text, { complaint, marked }: Notes): DecorationSet {
  const [bad, here] = [lineAt(doc, complaint?.line ?? null), lineAt(doc, marked)];
  const ranges = [
    ...(here && here.number !== bad?.number ? [Decoration.line({ class: "here" }).range(here.from)] : []),
    ...(bad && complaint
      ? [
          Decoration.line({ class: "bad" }).range(bad.from),
          Decoration.widget({ widget: new Message(complaint.message), block: true, side: 1 }).range(bad.to),
        ]
      : []),
  ];
  return Decoration.set(ranges, true);
}

/** A change of the text removes both: they are about the text before it. */
const notes = StateField.define<{ readonly notes: Notes; readonly decorations: DecorationSet }>({
  create: () => ({ notes: NONE, decorations: Decoration.none }),
  update(value, { docChanged, effects, state }) {
    const given = effects.filter((effect) => effect.is(noted)).map((effect) => effect.value as Partial<Notes>);
    if (!docChanged && given.length === 0) return value;
    const next: Notes = Object.assign({}, docChanged ? NONE : value.notes, ...given);
    return { notes: next, decorations: decorationsOf(state.doc, next) };
  },
  provide: (field) => EditorView.decorations.from(field, ({ decorations }) => decorations),
});

/** Types are rarer than values, and the main module's names are wanted more often than others. */
function boostOf({ kind, module }: Offer): number {
  if (kind === "type") return -2;
  return module === null || module === "tidemark" ? 1 : 0;
}

/** An offer in the list: its signature beside it, its module and its documentation in a box. */
function completionOf(offer: Offer): Completion {
  const { name, kind, signature, about, module } = offer;
  const sentences = [module === null ? "" : `from ${module}`, about].filter((text) => text !== "");
  return {
    ...{ label: name, detail: signature === "" ? kind : signature, boost: boostOf(offer) },
    info: () => h("div", {}, h("code", {}, `${name}${signature}`), ...sentences.map((text) => h("p", {}, text))),
    apply(view, _, from, to) {
      const edit = importEdit(view.state.doc.toString(), offer);
      const inserted = { from, to, insert: name };
      const changes = edit ? [{ from: edit.at, insert: edit.text }, inserted] : [inserted];
      const moved = from + name.length + (edit && edit.at <= from ? edit.text.length : 0);
      view.dispatch({ changes, selection: { anchor: moved }, userEvent: "input.complete" });
    },
  };
}

function libraryNames({ state, pos, explicit }: CompletionContext): CompletionResult | null {
  const offers = offersAt(COMPLETIONS, state.doc.toString(), pos, explicit);
  return offers && { from: offers.from, options: offers.items.map(completionOf), validFor: /^[\w$]*$/ };
}

function extensions(changed: () => void): Extension {
  return [
    ...[lineNumbers(), lintGutter(), history(), drawSelection(), highlightActiveLine(), notes],
    ...[indentUnit.of("  "), indentOnInput(), bracketMatching(), closeBrackets()],
    new LanguageSupport(
      typescriptLanguage,
      javascriptLanguage.data.of({ closeBrackets: { brackets: ["(", "[", "{", '"', "`"] } }),
    ),
    autocompletion({ override: [libraryNames, localCompletionSource], icons: false }),
    ...[editorTheme, syntaxHighlighting(highlightStyle), EditorView.lineWrapping],
    EditorView.contentAttributes.of({
      ...{ id: "code", "aria-label": "function", "aria-describedby": "complaint editor-keys" },
      ...{ spellcheck: "false", autocapitalize: "off", autocorrect: "off" },
    }),
    EditorView.contentAttributes.of((view): Record<string, string> => ({ "aria-invalid": `${isWrong(view.state)}` })),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) changed();
    }),
    keymap.of([
      { key: "Tab", run: acceptCompletion },
      ...[...closeBracketsKeymap, ...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap],
      indentWithTab,
    ]),
  ];
}

const isWrong = (state: EditorState): boolean => (state.field(notes, false)?.notes.complaint ?? null) !== null;

/** @param changed called after every edit of the user */
export function createEditor(first: string, changed: () => void): Editor {
  let isSetting = false;
  const view = new EditorView({ doc: first, extensions: extensions(() => !isSetting && changed()) });
  const reveal = (number: number | null) => {
    const line = lineAt(view.state.doc, number);
    return line ? [EditorView.scrollIntoView(line.from, { y: "nearest", yMargin: 40 })] : [];
  };
  return {
    element: h("div", { class: "editor" }, view.dom),
    text: () => view.state.doc.toString(),
    set(text) {
      isSetting = true;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
      view.dispatch(setDiagnostics(view.state, []));
      view.scrollDOM.scrollTop = 0;
      isSetting = false;
    },
    complain(complaint) {
      const line = lineAt(view.state.doc, complaint?.line ?? null);
      const from = line ? line.from + (/^\s*/.exec(line.text)?.[0].length ?? 0) : 0;
      const marks =
        complaint && line ? [{ from, to: line.to, severity: "error" as const, message: complaint.message }] : [];
      view.dispatch(setDiagnostics(view.state, marks));
      view.dispatch({ effects: [noted.of({ complaint }), ...reveal(complaint?.line ?? null)] });
    },
    mark(marked) {
      if (view.state.field(notes).notes.marked === marked) return;
      view.dispatch({ effects: [noted.of({ marked }), ...reveal(marked)] });
    },
  };
}
