/** @file How the editor looks, by the variables of the page, so that light and dark follow without a second theme. */
import { HighlightStyle } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,monospace";

export const editorTheme = EditorView.theme({
  "&": { maxHeight: "min(70vh,640px)", fontSize: "13px", color: "var(--text)", backgroundColor: "var(--card)" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
  ".cm-scroller": { overflow: "auto", fontFamily: MONO, lineHeight: "20px" },
  ".cm-content": { padding: "8px 0", caretColor: "var(--text)" },
  ".cm-line": { padding: "0 10px 0 6px" },
  ".cm-gutters": { backgroundColor: "var(--card)", color: "var(--quiet)", border: "0" },
  ".cm-gutter-lint": { width: "14px" },
  ".cm-gutter-lint .cm-gutterElement": { padding: "0 0 0 3px" },
  ".cm-lint-marker-error": {
    content: '""',
    width: "8px",
    height: "8px",
    borderRadius: "4px",
    background: "var(--bad)",
  },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLine": { backgroundColor: "color-mix(in srgb,var(--mark) 45%,transparent)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: "color-mix(in srgb,var(--accent) 28%,transparent)",
  },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--mark)", outline: "1px solid var(--line)" },
  ".cm-line.here": { backgroundColor: "var(--mark)", boxShadow: "inset 3px 0 var(--accent)" },
  ".cm-line.bad": {
    backgroundColor: "color-mix(in srgb,var(--bad) 14%,transparent)",
    boxShadow: "inset 3px 0 var(--bad)",
  },
  ".cm-message": {
    ...{ padding: "4px 10px 6px 12px", boxShadow: "inset 3px 0 var(--bad)", color: "var(--text)" },
    ...{ backgroundColor: "color-mix(in srgb,var(--bad) 7%,transparent)" },
    ...{ whiteSpace: "pre-wrap", overflowWrap: "anywhere", fontSize: "12px", lineHeight: "1.5" },
  },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)" },
  ".cm-tooltip": {
    ...{ backgroundColor: "var(--card)", color: "var(--text)", border: "1px solid var(--line)", borderRadius: "6px" },
    ...{ boxShadow: "0 6px 18px rgb(0 0 0/18%)", maxWidth: "min(560px,94vw)" },
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: MONO, maxHeight: "220px", maxWidth: "min(520px,90vw)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "2px 8px", lineHeight: "20px", overflow: "hidden" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": {
    ...{ background: "var(--mark)", color: "var(--text)" },
  },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700", color: "var(--accent)" },
  ".cm-completionDetail": { color: "var(--quiet)", fontStyle: "normal", marginLeft: "1ch" },
  ".cm-tooltip.cm-completionInfo": { padding: "6px 10px", maxWidth: "min(420px,90vw)" },
  ".cm-completionInfo code": { fontFamily: MONO, fontSize: "12px", overflowWrap: "anywhere" },
  ".cm-completionInfo p": { margin: "4px 0 0", color: "var(--quiet)" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap", fontFamily: MONO, fontSize: "12px", borderLeft: "5px solid var(--bad)" },
});

export const highlightStyle = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: [tags.typeName, tags.className], color: "var(--code-type)" },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName)], color: "var(--code-call)" },
]);
