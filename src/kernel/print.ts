/**
 * @file Kernels as text, for golden files, for people, and as the key under which equal kernels share their code. Each
 * distinct expression is a numbered line, so shared work shows as shared.
 */
import type { Bound, Expr, Index } from "./expr.ts";
import type { AttendNest, Kernel, Nest, RoutineNest, ScatterNest, StagedNest, Store } from "./loops.ts";
import { isTile, type Steps } from "./routine.ts";

/** How an operand at a constant element offset is named; equal kernels at other offsets get equal text through this. */
export type OperandName = (operand: number, offset: number) => string;

const plain: OperandName = (operand, offset) => (offset === 0 ? `p${operand}` : `p${operand}+${offset}`);

class Printer {
  readonly lines: string[] = [];
  readonly #name: OperandName;
  readonly #byText = new Map<string, string>();
  readonly #byExpr = new Map<Expr, string>();

  constructor(name: OperandName) {
    this.#name = name;
  }

  index(index: Index, offset = index.offset): string {
    const parts = index.terms.map(({ atom, coef }) => {
      const scale = coef === 1 ? "" : `${coef} `;
      if (atom.kind === "var") return `${scale}${atom.name}`;
      if (atom.kind === "value") return `${scale}${this.expr(atom.expr)}`;
      return `${scale}((${this.index(atom.of)}) ${atom.kind} ${atom.by})`;
    });
    if (offset !== 0 || parts.length === 0) parts.push(`${offset}`);
    return parts.join(" + ");
  }

  operand(operand: number): string {
    return this.#name(operand, 0);
  }

  access(operand: number, index: Index): string {
    return `${this.#name(operand, index.offset)}[${this.index(index, 0)}]`;
  }

  bounds(bounds: readonly Bound[]): string {
    return bounds.map((b) => `${b.lo} ≤ ${this.index(b.index)} < ${b.hi}`).join(", ");
  }

  expr(expr: Expr): string {
    const known = this.#byExpr.get(expr);
    if (known) return known;
    const text = this.#text(expr);
    let name = text;
    if (expr.kind !== "const" && expr.kind !== "acc") {
      name = this.#byText.get(text) ?? "";
      if (!name) {
        name = `%${this.#byText.size}`;
        this.#byText.set(text, name);
        this.lines.push(`    ${name}: ${expr.dtype} = ${text}`);
      }
    }
    this.#byExpr.set(expr, name);
    return name;
  }

  #text(expr: Expr): string {
    switch (expr.kind) {
      case "const":
        return `${Object.is(expr.value, -0) ? "-0" : expr.value}:${expr.dtype}`;
      case "load":
        return this.access(expr.operand, expr.index);
      case "index":
        return `index(${this.index(expr.index)})`;
      case "call":
        return `${expr.fn}(${expr.args.map((a) => this.expr(a)).join(", ")})`;
      case "guard":
        return `if ${this.bounds(expr.bounds)} then ${this.expr(expr.then)} else ${this.expr(expr.otherwise)}`;
      case "acc":
        return "acc";
    }
  }

  stores(stores: readonly Store[]): void {
    const values = stores.map((s) => this.expr(s.value));
    for (const [i, s] of stores.entries()) this.lines.push(`    ${this.access(s.operand, s.index)} ← ${values[i]}`);
  }
}

const loopsText = (loops: readonly { readonly name: string; readonly extent: number }[]): string =>
  loops.map((v) => `${v.name} < ${v.extent}`).join(", ");

function writeAttend(nest: AttendNest, p: Printer): void {
  const { batch, group, rows, cols, depth, width, backward, length } = nest;
  const [least, most] = nest.sees.map((limit) => limit && p.index(limit));
  const keys = length ? `, j < ${p.index(length)}` : "";
  const counters = `${loopsText(batch)} | ${loopsText([group, rows, cols, depth, width])}`;
  p.lines.push(`  attend ${counters}, ${least ?? "-∞"} ≤ j - i ≤ ${most ?? "∞"}${keys}: ${nest.dtype}`);
  p.lines.push(`    q = ${p.expr(nest.q)}, k = ${p.expr(nest.k)}, v = ${p.expr(nest.v)}`);
  p.lines.push(`    score = ${p.expr(nest.score)}`);
  if (nest.weight) p.lines.push(`    weight = ${p.expr(nest.weight)}`);
  if (backward) {
    const { g, logsum, delta } = backward;
    p.lines.push(`    g = ${p.expr(g)}, logsum = ${p.expr(logsum)}, delta = ${p.expr(delta)}`);
  }
  p.stores(nest.stores);
}

/** Values are written where they are computed: an equal text later may be of other data. */
function writeSteps(steps: Steps, name: OperandName, margin: string, lines: string[]): void {
  for (const step of steps) {
    const p = new Printer(name);
    const put = (text: string): void => {
      lines.push(...p.lines.map((line) => `${margin}${line}`), `${margin}    ${text}`);
    };
    switch (step.kind) {
      case "set":
        p.stores(step.stores);
        lines.push(...p.lines.map((line) => `${margin}${line}`));
        break;
      case "for":
      case "each": {
        put(
          `${step.kind} ${step.counter.name} < ${step.counter.extent} from ${p.index(step.from)} to ${p.index(step.to)}`,
        );
        writeSteps(step.body, name, `${margin}  `, lines);
        break;
      }
      case "while":
        put(`while ${p.expr(step.test)}, at most ${step.most} times`);
        writeSteps(step.body, name, `${margin}  `, lines);
        break;
      case "if":
        put(`if ${p.expr(step.test)}`);
        writeSteps(step.body, name, `${margin}  `, lines);
        if (step.otherwise.length === 0) break;
        lines.push(`${margin}    else`);
        writeSteps(step.otherwise, name, `${margin}  `, lines);
    }
  }
}

function writeRoutine({ loops, dtype, tiles, body }: RoutineNest, p: Printer, name: OperandName): void {
  const memory = tiles.map((tile) => (tile.kind === "single" ? tile.dtype : `${dtype}[${tile.elements}]`));
  p.lines.push(`  routine ${loopsText(loops)} | ${memory.join(", ")}: ${dtype}`);
  const named: OperandName = (operand, offset) => (isTile(operand) ? plain(operand, offset) : name(operand, offset));
  writeSteps(body, named, "", p.lines);
}

function writeScatter({ loops, operand, index, combine, ...nest }: ScatterNest, p: Printer): void {
  p.lines.push(`  scatter ${loopsText(loops)}`);
  const value = p.expr(nest.value);
  p.lines.push(`    if ${p.bounds(nest.bounds)}: ${p.access(operand, index)} ${combine ?? "+"}= ${value}`);
}

function writeStaged({ units, tile, dtype, body }: StagedNest, p: Printer): void {
  p.lines.push(`  staged ${loopsText(units)} | tile ${p.operand(tile.operand)} of ${tile.elements}: ${dtype}`);
  for (const map of body) writeNest(map, p);
}

function writeNest(nest: Exclude<Nest, RoutineNest>, p: Printer): void {
  switch (nest.kind) {
    case "map": {
      const unless = nest.skipIfAliased ? ` unless ${nest.skipIfAliased.map((o) => p.operand(o)).join(" is ")}` : "";
      p.lines.push(`  map ${loopsText(nest.loops)}${unless}`);
      p.stores(nest.stores);
      return;
    }
    case "reduce":
    case "scan": {
      const over =
        nest.kind === "reduce"
          ? `${nest.combine} over ${loopsText(nest.reduce)} ${nest.order}`
          : `along ${loopsText([nest.along])}`;
      p.lines.push(`  ${nest.kind} ${loopsText(nest.loops)} | ${over}: ${nest.dtype}`);
      if (nest.kind === "scan" && nest.scale) p.lines.push(`    acc · ${p.expr(nest.scale)} ⊕ ${p.expr(nest.body)}`);
      else p.lines.push(`    acc ${nest.kind === "scan" && nest.combine ? nest.combine : "⊕"} ${p.expr(nest.body)}`);
      p.stores(nest.stores);
      return;
    }
    case "contract": {
      const { window } = nest;
      const slides = window
        ? ` sums ${window.sums} sliding ${window.slides} by ${window.taps.join("×")} over ${window.places.join("×")}`
        : "";
      p.lines.push(
        `  contract ${loopsText(nest.batch)} | ${loopsText([nest.rows, nest.cols, ...(nest.split ?? [nest.depth])])}${slides}: ${nest.dtype} scratch ${p.operand(nest.scratch)}`,
      );
      for (const { rows, cols, depth, constant } of nest.within ?? []) {
        p.lines.push(`    within ${rows}·${nest.rows.name} + ${cols}·${nest.cols.name} + ${depth}·k + ${constant} ≤ 0`);
      }
      if (nest.span) p.lines.push(`    span ${p.index(nest.span.from)} ≤ k < ${p.index(nest.span.to)}`);
      if (nest.start) p.lines.push(`    acc = ${p.expr(nest.start)}`);
      p.lines.push(`    acc ⊕ ${p.expr(nest.a)} · ${p.expr(nest.b)}`);
      p.stores(nest.stores);
      return;
    }
    case "scatter":
      writeScatter(nest, p);
      return;
    case "shuffle":
      p.lines.push(`  shuffle ${loopsText([nest.along])}`);
      p.lines.push(`    ${p.expr(nest.bits)} → ${p.operand(nest.operand)}`);
      return;
    case "collective":
      p.lines.push(`  ${nest.text}: ${nest.read ? p.operand(nest.read.operand) : ""} → ${p.operand(nest.to)}`);
      return;
    case "sort":
      p.lines.push(`  sort ${loopsText(nest.loops)} | ${loopsText([nest.along, nest.rank])}`);
      p.lines.push(`    by ${nest.keys.map((key) => p.expr(key)).join(", ")}`);
      p.stores(nest.stores);
      return;
    case "staged":
      writeStaged(nest, p);
      return;
    case "attend":
      writeAttend(nest, p);
  }
}

/** One nest; the loops of equal work on other data have equal text when operands are named by their place in it. */
export function printNest(nest: Nest, name: OperandName = plain): string {
  const p = new Printer(name);
  if (nest.kind === "routine") writeRoutine(nest, p, name);
  else writeNest(nest, p);
  return p.lines.join("\n");
}

export function printKernel(kernel: Kernel, name: OperandName = plain): string {
  const operands = kernel.operands.map((o, i) => `p${i}: ${o.role} ${o.dtype}[${o.elements}]`);
  return [`kernel(${operands.join(", ")})`, ...kernel.nests.map((nest) => printNest(nest, name))].join("\n");
}
