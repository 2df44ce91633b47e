/**
 * @file Devices side by side: what each takes, by what it is for, as columns on one scale, and other ways of sharing the same work out. The page is
 * one text without a script.
 *
 *   memory ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄
 *           ██
 *           ██    ▓▓
 *           ▓▓    ▒▒    ▓▓
 *          first middle last
 */
import { formatBytes } from "../base/bytes.ts";
import { kindColour } from "./page/palette.ts";
import { DARK, LIGHT } from "./page/style.ts";
import { escaped, shellHtml } from "./page-shell.ts";
import type { ViewKind } from "./picture.ts";

/** A device, or a way of sharing out by its fullest device. */
export interface DeviceColumn {
  readonly name: string;
  /** What is said below the name. */
  readonly notes: readonly string[];
  /** Bytes by what they are for, at the tightest moment: they add up to `bytes`. */
  readonly terms: Readonly<Record<string, number>>;
  readonly bytes: number;
}

export interface DevicesData {
  readonly title: string;
  /** Sentences above the columns. */
  readonly lines: readonly string[];
  /** What one device has; null: not known. */
  readonly memoryBytes: number | null;
  readonly devices: readonly DeviceColumn[];
  /** Other ways of the same work, with the chosen one first. */
  readonly ways: readonly DeviceColumn[];
}

/** Colours of terms, among those of the page of plans. Constants and inputs share one; no other two terms of a page do. */
const COLOURS: Readonly<Record<string, ViewKind>> = {
  // of configs
  parameters: "parameter",
  gradients: "gradient",
  optimizer: "state",
  gathered: "recomputed",
  activations: "kept",
  block: "forward",
  logits: "result",
  buckets: "scratch",
  // of planned programs
  constants: "input",
  input: "input",
  result: "result",
  activation: "kept",
  gradient: "gradient",
  update: "recomputed",
  scratch: "scratch",
  rest: "forward",
};
const OTHER: ViewKind = "scratch";

/** Terms of all columns, in the order in which they are met. */
const termsOf = (columns: readonly DeviceColumn[]): readonly string[] => [
  ...new Set(
    columns.flatMap(({ terms }) => Object.entries(terms).flatMap(([term, bytes]) => (bytes > 0 ? [term] : []))),
  ),
];

const percent = (share: number): string => `${(100 * share).toFixed(3)}%`;

/** Above the fullest column there is room for a line of memory that is not far from it. */
function scaleOf(columns: readonly DeviceColumn[], memoryBytes: number | null): number {
  const most = Math.max(1, ...columns.map(({ bytes }) => bytes));
  return 1.04 * (memoryBytes !== null && memoryBytes <= 3 * most ? Math.max(memoryBytes, most) : most);
}

function columnsHtml(columns: readonly DeviceColumn[], memoryBytes: number | null): string {
  const [scale, terms] = [scaleOf(columns, memoryBytes), termsOf(columns)];
  const line =
    memoryBytes !== null && memoryBytes < scale
      ? `<div class="memory" style="bottom:${percent(memoryBytes / scale)}"><span>${formatBytes(memoryBytes)} of memory</span></div>`
      : "";
  const bars = columns.map(({ name, terms: own, bytes }) => {
    const parts = terms.map((term) => {
      const part = own[term] ?? 0;
      const text = escaped(`${name}: ${term} ${formatBytes(part)}`);
      return part > 0 ? `<i class="${classOf(term)}" style="height:${percent(part / scale)}" title="${text}"></i>` : "";
    });
    const isOver = memoryBytes !== null && bytes > memoryBytes;
    return `<div class="bar"><b${isOver ? ' class="over"' : ""}>${formatBytes(bytes)}</b>${parts.toReversed().join("")}</div>`;
  });
  const names = columns.map(
    ({ name, notes }) => `<div><b>${escaped(name)}</b>${notes.map((note) => `<br>${escaped(note)}`).join("")}</div>`,
  );
  return `<div class="wide"><div class="bars">${line}${bars.join("")}</div><div class="names">${names.join("")}</div></div>`;
}

const classOf = (term: string): string => `k-${COLOURS[term] ?? OTHER}`;

function tableHtml(columns: readonly DeviceColumn[]): string {
  const cell = (bytes: number): string => `<td>${formatBytes(bytes)}</td>`;
  const rows = termsOf(columns).map(
    (term) =>
      `<tr><th><i class="dot ${classOf(term)}"></i>${escaped(term)}</th>${columns.map(({ terms }) => cell(terms[term] ?? 0)).join("")}</tr>`,
  );
  const head = columns.map(({ name }) => `<th>${escaped(name)}</th>`).join("");
  const total = `<tr><th>together</th>${columns.map(({ bytes }) => cell(bytes)).join("")}</tr>`;
  return `<div class="wide"><table><tr><th></th>${head}</tr>${rows.join("")}${total}</table></div>`;
}

/** Colours of kinds as rules, light and dark. */
function colourRules(dark: boolean): string {
  const kinds = [...new Set([...Object.values(COLOURS), OTHER])];
  return kinds.map((kind) => `.k-${kind}{background:${kindColour(kind, dark)}}`).join("");
}

const STYLE = `
:root{${LIGHT};color-scheme:light dark;font:14px/1.45 system-ui,sans-serif}
${colourRules(false)}
@media (prefers-color-scheme:dark){:root{${DARK}}${colourRules(true)}}
*{box-sizing:border-box}
body{margin:0 auto;padding:14px;max-width:1200px;background:var(--bg);color:var(--text)}
h1{font-size:20px;margin:0}
h2{font-size:14px;margin:0 0 8px}
p{margin:2px 0;color:var(--quiet)}
section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px;margin:12px 0}
.wide{overflow-x:auto}
.bars,.names{display:flex;gap:16px;min-width:max-content}
.bars{position:relative;height:300px;align-items:flex-end;border-bottom:1px solid var(--line);margin-top:22px;box-sizing:content-box}
.bar,.names>div{width:150px}
.bar{display:flex;flex-direction:column;justify-content:flex-end;height:300px}
.bar i{display:block;flex:none;min-height:1px;margin:0 20px}
.bar b{text-align:center;font-variant-numeric:tabular-nums}
.over{color:var(--bad)}
.names{font-size:12px;color:var(--quiet);padding-top:6px;text-align:center}
.names b{color:var(--text);overflow-wrap:anywhere}
.memory{position:absolute;left:0;right:0;border-top:2px dashed var(--bad)}
.memory span{position:absolute;right:0;top:2px;font-size:12px;color:var(--bad);background:var(--card);padding:0 4px}
table{border-collapse:collapse;margin-top:12px;font-variant-numeric:tabular-nums}
th,td{padding:2px 14px 2px 0;text-align:right;font-weight:400}
th:first-child{text-align:left}
tr:last-child>*{border-top:1px solid var(--line);font-weight:600}
.dot{display:inline-block;width:12px;height:12px;border-radius:3px;margin-right:7px;vertical-align:-1px}
`;

export function devicesHtml({ title, lines, memoryBytes, devices, ways }: DevicesData): string {
  const section = (name: string, columns: readonly DeviceColumn[]): string =>
    `<section><h2>${name}</h2>${columnsHtml(columns, memoryBytes)}${tableHtml(columns)}</section>`;
  const others = ways.length > 1 ? section("Ways of sharing it out, by the fullest device", ways) : "";
  const said = lines.map((line) => `<p>${escaped(line)}</p>`).join("");
  return shellHtml({
    title: `${title} · Tidemark`,
    policy: [],
    blocks: `<style>${STYLE}</style>\n<header><h1>${escaped(title)}</h1>${said}</header>\n${section("Devices", devices)}${others}\n`,
  });
}
