/** @file Reverse mode and the tape. */
import { h, replace, svg } from "../../../src/view/page/dom.ts";
import { heldTable } from "../../../src/view/page/held.ts";
import type { Lifetimes, ScalarTape, TapeLine } from "../engine/tape.ts";
import { createEngine, latest } from "../kit/engine.ts";
import {
  figureNumber,
  fitted,
  type LegendItem,
  legend,
  numbersTable,
  positions,
  slider,
  stage,
  tableSlot,
  verdict,
} from "../kit/figure.ts";
import { barsView } from "../kit/plot.ts";
import { firstFigure, startPage } from "../kit/start.ts";
import { bytesText, decimal } from "../kit/text.ts";

const engine = createEngine();

/** Values of the two inputs in hundredths. */
const [FIRST_A, FIRST_B] = [150, 70];

function lineOf(line: TapeLine, index: number, now: number, read: readonly number[]): HTMLElement {
  const isDone = index <= now;
  const isAlive = isDone && line.lastRead > now;
  const classes = [isDone ? "done" : "", index === now ? "now" : "", read.includes(index) ? "read" : ""];
  const held = h("span", { class: "held", "aria-hidden": "true" }, "●");
  const say = isAlive ? h("span", { class: "unseen" }, ", still needed") : null;
  return h(
    "li",
    { class: [...classes, isAlive ? "alive" : ""].filter(Boolean).join(" ") },
    line.name,
    h("span", {}, line.text),
    h("span", { class: "value" }, isDone ? decimal(line.value) : "", " ", held, say),
  );
}

interface TapeState {
  readonly tape: ScalarTape;
  readonly now: number;
}

function drawLines(element: HTMLElement, { tape, now }: TapeState): void {
  const { lines } = tape;
  const read = lines[now]?.reads ?? [];
  const list = (phase: string): HTMLElement =>
    h(
      "ol",
      { class: "tape-lines", "aria-label": phase === "forward" ? "the program" : "its derivative" },
      ...lines.flatMap((line, i) => (line.phase === phase ? [lineOf(line, i, now, read)] : [])),
    );
  const column = (title: string, phase: string): HTMLElement =>
    h("div", {}, h("p", { class: "column-title" }, title), list(phase));
  replace(element, column("The program", "forward"), column("Its derivative", "backward"));
}

async function scalar(): Promise<void> {
  const box = stage("scalar");
  const [lines, told] = [h("div", { class: "two-columns" }), verdict()];
  let state: TapeState = { tape: await engine.call("scalarTape", FIRST_A / 100, FIRST_B / 100), now: 0 };
  const last = state.tape.lines.length - 1;
  // the forward pass is done: what is marked now waits for the derivative
  const turn = state.tape.lines.findIndex(({ phase }) => phase === "backward") - 1;
  state = { ...state, now: turn };
  const draw = (): void => {
    drawLines(lines, state);
    const { slopes, differences, value } = state.tape;
    const [da, db] = slopes;
    told.say(
      ...["f = ", figureNumber("f", value, decimal(value))],
      ...[", slope in a: ", figureNumber("da", da, decimal(da)), ", in b: ", figureNumber("db", db, decimal(db))],
      `. By moving each input a little: ${decimal(differences[0])} and ${decimal(differences[1])}.`,
    );
  };
  const at = latest((a: number, b: number) => engine.call("scalarTape", a, b));
  const changed = async (): Promise<void> => {
    const tape = await at(a.value() / 100, b.value() / 100);
    if (tape) {
      state = { ...state, tape };
      draw();
    }
  };
  const input = (id: string, value: number) =>
    slider({
      ...{ id, label: id, min: -300, max: 300, step: 5, value },
      text: (v) => decimal(v / 100, 2),
      changed: () => void changed(),
    });
  const [a, b] = [input("a", FIRST_A), input("b", FIRST_B)];
  const step = positions({
    ...{ id: "line", label: "Line", count: last + 1, first: turn },
    text: (i) => `${state.tape.lines[i]?.name ?? ""} (${i + 1} of ${last + 1})`,
    shown: (now) => {
      state = { ...state, now };
      draw();
    },
    pause: () => 900,
  });
  replace(box, h("div", { class: "controls" }, a.element, b.element), step.element, lines, told.element);
  draw();
  firstFigure();
}

const GANTT = { left: 104, right: 8, top: 22, row: 15, curve: 120 } as const;

function ganttOf(data: Lifetimes, width: number, now: number): SVGElement {
  const { steps, values, live } = data;
  const { left, right, top, row, curve } = GANTT;
  const x = (step: number): number => left + (step / steps.length) * (width - left - right);
  const rows = values.length * row;
  const height = top + rows + curve;
  const turn = steps.findIndex(({ phase }) => phase === "backward");
  const most = Math.max(...live);
  const y = (bytes: number): number => height - 4 - (bytes / most) * (curve - 30);
  const bars = values.flatMap(({ name, start, end, kept, backward }, i): readonly SVGElement[] => {
    const made = backward ? "var(--c)" : "var(--quiet)";
    const colour = kept ? "var(--b)" : made;
    const isAlive = start <= now && now < end;
    const bar = { x: x(start), y: top + i * row + 2, width: Math.max(2, x(end) - x(start)), height: row - 4, rx: 2 };
    const mark = svg("rect", { ...bar, class: isAlive ? "life" : "life faint", style: `--series:${colour}` });
    const text = svg("text", { x: left - 8, y: top + i * row + 11, "text-anchor": "end", class: "row-name" }, name);
    return [text, mark];
  });
  const outline = live.map((bytes, t) => `${t === 0 ? "M" : "L"}${x(t)} ${y(bytes)}H${x(t + 1)}`).join("");
  const area = `${outline}V${height - 4}H${x(0)}Z`;
  const about = `Lifetimes of ${values.length} values over ${steps.length} steps. ${values.filter((v) => v.kept).length} wait for the backward pass; at most ${bytesText(most)} are alive, at step ${data.peakStep}.`;
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width, height, class: "gantt", role: "img", "aria-label": about },
    svg("rect", { x: x(turn), y: 0, width: x(steps.length) - x(turn), height, class: "band" }),
    svg("text", { x: x(0) + 2, y: 14, class: "band-name" }, "forward"),
    svg("text", { x: x(turn) + 6, y: 14, class: "band-name" }, "backward"),
    ...bars,
    svg("path", { d: area, class: "area", style: "--series:var(--a)" }),
    svg("path", { d: outline, class: "series", style: "--series:var(--a)" }),
    svg("text", { x: left - 8, y: height - 10, "text-anchor": "end", class: "tick" }, "bytes alive"),
    svg("line", { x1: x(now + 0.5), x2: x(now + 0.5), y1: top, y2: height - 4, class: "cursor" }),
  );
}

function lifetimesTable({ values }: Lifetimes): HTMLElement {
  const rows = values.map(({ name, bytes, start, end, kept }) => ({
    cells: [name, bytesText(bytes), String(start), String(end - 1), kept ? "yes" : "no"],
  }));
  return numbersTable("lifetimes of values", ["value", "size", "first step", "last step", "waits for backward"], rows);
}

const [LAYERS, BATCH, WIDTH] = [5, 256, 64] as const;

const LIVES: readonly LegendItem[] = [
  { colour: "var(--b)", text: "made forward, waits for backward", square: true },
  { colour: "var(--quiet)", text: "forward only", square: true },
  { colour: "var(--c)", text: "made backward", square: true },
];

async function lifetimes(): Promise<void> {
  const box = stage("lifetimes");
  const [drawing, told, table] = [h("div", { class: "plot" }), verdict(), tableSlot()];
  let data = await engine.call("lifetimes", LAYERS, BATCH, WIDTH);
  let now = data.peakStep;
  const draw = fitted(drawing, (width) => replace(drawing, ganttOf(data, width, now)));
  const say = (): void => {
    const alive = data.values.filter(({ start, end }) => start <= now && now < end);
    const waiting = alive.filter(({ kept }) => kept).length;
    const bytes = data.live[now] ?? 0;
    told.say(
      ...[
        `Step ${now}, ${data.steps[now]?.text ?? ""}: `,
        figureNumber("alive", alive.length, `${alive.length} values`),
      ],
      ...[
        " alive, ",
        figureNumber("alive.bytes", bytes, bytesText(bytes)),
        `; ${waiting} of them wait for the backward pass.`,
      ],
    );
  };
  const planned = latest((layers: number) => engine.call("lifetimes", layers, BATCH, WIDTH));
  const depth = slider({
    ...{ id: "layers", label: "Layers", min: 1, max: 10, value: LAYERS },
    text: (n) => `${n} layer${n === 1 ? "" : "s"}`,
    changed: async (n) => {
      const next = await planned(n);
      if (!next) return;
      [data, now] = [next, next.peakStep];
      step.input.max = String(next.steps.length - 1);
      step.set(now);
      table.show(lifetimesTable(data));
      draw();
      say();
    },
  });
  const step = slider({
    ...{ id: "step", label: "Step", min: 0, max: data.steps.length - 1, value: now },
    text: (t) => `${t} of ${data.steps.length - 1}`,
    changed: (t) => {
      now = t;
      draw();
      say();
    },
  });
  const controls = h("div", { class: "controls" }, depth.element, step.element);
  replace(box, controls, legend(LIVES), drawing, told.element, table.element);
  table.show(lifetimesTable(data));
  draw();
  say();
}

const HELD = [
  ["overloadBytes", "Inputs and outputs of every operation", "var(--b)"],
  ["namedSavesBytes", "What derivatives name", "var(--d)"],
  ["tapeBytes", "Less what costs nothing to rebuild", "var(--a)"],
  ["plannedBytes", "A planned program", "var(--c)"],
] as const;

async function held(): Promise<void> {
  const box = stage("held");
  const account = await engine.call("heldByTapes", 256, 128);
  const bars = barsView();
  const shown = HELD.map(([column, name, colour]) => {
    return { name, parts: [{ name, value: account[column], colour }], text: bytesText(account[column]) };
  });
  const numbers = HELD.map(([column]) => h("span", { "data-number": column, "data-value": String(account[column]) }));
  const list = h("details", { class: "numbers" }, h("summary", {}, "By operation, as a table"));
  list.append(
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "held by operation" }, heldTable(account)),
  );
  replace(box, bars.element, h("span", { hidden: true }, ...numbers), list);
  bars.show(shown, `Held between the passes: ${shown.map(({ name, text }) => `${name}, ${text}`).join("; ")}.`);
}

startPage([scalar, lifetimes, held]);
