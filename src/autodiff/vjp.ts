/**
 * @file Reverse mode as a transformation of graphs: params ++ cotangents of float results → results ++ cotangents of the
 * active parameters. The joint graph holds the forward nodes first, as they were, then the backward nodes; both are
 * ordinary operations, so the result can be planned, printed and differentiated again.
 *
 *   x ── f ── y          x ── f ── y
 *                →       │         │
 *                        d_x ─ fᵀ ─ d_y
 *
 * The forward walk copies nodes and leaves one tape entry for each node that a derivative flows through; the backward
 * walk runs the entries in reverse. Cotangents of a value that is used in several places are summed as they arrive, the
 * last use first, one `add` each, so that a planner may sum in place. A cotangent of zero is null and never a tensor.
 *
 * Nothing here decides what is kept: a value of the forward part that a backward node reads is an edge of the graph. The
 * one exception is a checkpointed call: its nodes are appended once more before their backward, under a number of their
 * own (`replay`), so that only the call's inputs cross from forward to backward.
 */
import { invariant } from "../base/invariant.ts";
import { Build } from "../ir/build.ts";
import type { Graph, Node, Phase, Value } from "../ir/graph.ts";
import { newValue } from "../ir/graph.ts";
import { isFloat } from "../kernel/dtype.ts";
import { full, fullLike } from "../ops/create.ts";
import { add } from "../ops/elementwise.ts";
import { reshape } from "../ops/movement.ts";
import { activeInputs } from "./activity.ts";
import { maxReplay } from "./build-aids.ts";
import { pullbackOfNode } from "./local.ts";
import { regionRule } from "./region.ts";

/**
 * One step of the tape: from the cotangents of its outputs to those of its inputs; null is zero. A step that is itself a
 * walk adds to `all` on its own.
 */
interface Entry {
  readonly inputs: readonly Value[];
  readonly outputs: readonly Value[];
  readonly where: string | undefined;
  pullback(cts: readonly (Value | null)[], all: Cotangents): readonly (Value | null)[];
}

/** How the forward walk marks what it copies. */
interface Marks {
  readonly phase: Phase | null;
  replay(of: number): number;
  name(of: string | undefined): string | undefined;
}

const AS_IS: Marks = { phase: null, replay: (of) => of, name: (of) => of };

/** Marks for the nodes of a call that is inlined: they belong where the call belonged. */
function inside(node: Node, marks: Marks): Marks {
  const phase = marks.phase ?? (node.phase === "forward" ? null : node.phase);
  return { ...marks, phase, replay: (of) => marks.replay(of === 0 ? node.replay : of) };
}

/** Appends `d_…` sums as contributions arrive. */
class Cotangents {
  readonly #b: Build;
  readonly #sums = new Map<Value, Value>();

  constructor(b: Build) {
    this.#b = b;
  }

  of(value: Value): Value | null {
    return this.#sums.get(value) ?? null;
  }

  add(value: Value, contribution: Value): void {
    const sum = this.#sums.get(value);
    const hint = value.name ? `d_${value.name}` : undefined;
    this.#sums.set(value, sum ? this.#b.call(add, [sum, contribution], {}, { name: hint }) : contribution);
  }
}

class Reverse {
  readonly b: Build;
  readonly #active = new Set<Value>();
  #lastReplay: number;

  constructor(graph: Graph) {
    this.b = new Build(`${graph.name}_vjp`);
    this.#lastReplay = maxReplay(graph);
  }

  activate(value: Value): void {
    if (isFloat(value.type.dtype)) this.#active.add(value);
  }

  isActive(value: Value): boolean {
    return this.#active.has(value);
  }

  /** Appends a graph's nodes and, for those that a derivative flows through, entries to the tape. */
  forward(graph: Graph, inputs: readonly Value[], marks: Marks, tape: Entry[]): readonly Value[] {
    const map = new Map<Value, Value>();
    graph.params.forEach((param, i) => {
      map.set(param, inputs[i] as Value);
    });
    const resolve = (value: Value): Value => {
      const found = map.get(value);
      invariant(found, () => `value ${value.name ?? value.id} of ${graph.name} is not defined before its use`);
      return found;
    };
    for (const node of graph.nodes) {
      const outputs = this.#step(node, node.inputs.map(resolve), marks, tape);
      node.outputs.forEach((value, i) => {
        map.set(value, outputs[i] as Value);
      });
    }
    return graph.results.map(resolve);
  }

  #step(node: Node, inputs: readonly Value[], marks: Marks, tape: Entry[]): readonly Value[] {
    const active = activeInputs(node, inputs, (value) => this.isActive(value));
    if (active.length === 0) return this.#copy(node, inputs, marks).outputs;
    const rule = node.op.derivative.kind === "region" ? regionRule(node) : null;
    let outputs: readonly Value[];
    switch (rule?.kind) {
      // activity inside decides which results are active
      case "inline":
        return this.forward(rule.body, inputs, inside(node, marks), tape);
      case "custom_vjp": {
        const made = this.b.inline(rule.forward, inputs, this.#override(node, marks));
        const saved = made.slice(rule.results);
        outputs = this.#distinct(made.slice(0, rule.results), inputs);
        tape.push(this.#customEntry(rule.backward, saved, inputs, outputs, node.where));
        for (const value of outputs) this.activate(value);
        return [...outputs, ...saved];
      }
      case "custom_jvp":
        outputs = this.#copy(node, inputs, marks).outputs;
        tape.push(this.#transposedEntry(rule.tangent, inputs, outputs, active, node.where));
        break;
      case "replay":
        outputs = this.#copy(node, inputs, marks).outputs;
        tape.push(this.#replayEntry(rule.body, inputs, outputs, node.where));
        break;
      default: {
        const copy = this.#copy(node, inputs, marks);
        outputs = copy.outputs;
        tape.push({ inputs, outputs, where: node.where, pullback: (cts) => pullbackOfNode(this.b, copy, active, cts) });
      }
    }
    for (const value of outputs) this.activate(value);
    return outputs;
  }

  /** A result that is an input or occurs twice would share its cotangent with it: it gets a value of its own. */
  #distinct(results: readonly Value[], inputs: readonly Value[]): readonly Value[] {
    return results.map((value, i) => {
      if (!inputs.includes(value) && results.indexOf(value) === i) return value;
      return this.b.call(reshape, [value], { shape: value.type.shape });
    });
  }

  #override(node: Node, marks: Marks): { phase: Phase; replay: number; where: string | undefined } {
    return { phase: marks.phase ?? node.phase, replay: marks.replay(node.replay), where: node.where };
  }

  #copy(node: Node, inputs: readonly Value[], marks: Marks): Node {
    const outputs = node.outputs.map((value) => newValue(value.type, marks.name(value.name)));
    const copy = { ...node, inputs, outputs, phase: marks.phase ?? node.phase, replay: marks.replay(node.replay) };
    this.b.append(copy);
    return copy;
  }

  /** Runs a tape backwards into `cts`. */
  backward(tape: readonly Entry[], cts: Cotangents): void {
    for (const entry of [...tape].reverse()) {
      const given = entry.outputs.map((value) => cts.of(value));
      if (given.every((ct) => ct === null)) continue;
      this.b.where = entry.where;
      const made = entry.pullback(given, cts);
      entry.inputs.forEach((value, i) => {
        const contribution = made[i];
        if (contribution && this.isActive(value)) cts.add(value, contribution);
      });
    }
    this.b.where = undefined;
  }

  /** backward region: residuals ++ cotangents of the float results → cotangents of the inputs. */
  #customEntry(
    backward: Graph,
    residuals: readonly Value[],
    inputs: readonly Value[],
    outputs: readonly Value[],
    where: string | undefined,
  ): Entry {
    const pullback = (cts: readonly (Value | null)[]): readonly (Value | null)[] => {
      const given = this.#materialised(outputs, cts);
      const made = this.b.inline(backward, [...residuals, ...given], { phase: "backward", where });
      let next = 0;
      return inputs.map((value) => (isFloat(value.type.dtype) ? (made[next++] ?? null) : null));
    };
    return { inputs, outputs, where, pullback };
  }

  /** tangent region: inputs ++ tangents → tangents, linear in the latter; its reverse at any tangent is its transpose. */
  #transposedEntry(
    region: Graph,
    inputs: readonly Value[],
    outputs: readonly Value[],
    active: readonly number[],
    where: string | undefined,
  ): Entry {
    const floats = inputs.flatMap((value, i) => (isFloat(value.type.dtype) ? [i] : []));
    const floatOutputs = outputs.flatMap((value, o) => (isFloat(value.type.dtype) ? [o] : []));
    const pullback = (cts: readonly (Value | null)[]): readonly (Value | null)[] => {
      const tangents = floats.map((i) => fullLike(this.b, inputs[i] as Value, 0));
      // only the tangents are variables of this walk
      const held = inputs.filter((value) => this.#active.delete(value));
      floats.forEach((i, t) => {
        if (active.includes(i)) this.activate(tangents[t] as Value);
      });
      const tape: Entry[] = [];
      const results = this.forward(region, [...inputs, ...tangents], { ...AS_IS, phase: "backward" }, tape);
      for (const value of held) this.activate(value);
      const sums = new Cotangents(this.b);
      results.forEach((tangent, r) => {
        const ct = cts[floatOutputs[r] as number];
        if (ct && this.isActive(tangent)) sums.add(tangent, ct);
      });
      this.backward(tape, sums);
      return inputs.map((_, i) => (active.includes(i) ? sums.of(tangents[floats.indexOf(i)] as Value) : null));
    };
    return { inputs, outputs, where, pullback };
  }

  /** The sums go on where the inputs' own sums stand, so the order of additions is that of a plain call. */
  #replayEntry(body: Graph, inputs: readonly Value[], outputs: readonly Value[], where: string | undefined): Entry {
    const pullback = (cts: readonly (Value | null)[], all: Cotangents): readonly (Value | null)[] => {
      const tape: Entry[] = [];
      const results = this.forward(body, inputs, this.#freshMarks(), tape);
      results.forEach((value, i) => {
        const ct = cts[i];
        if (ct && this.isActive(value)) all.add(value, ct);
      });
      this.backward(tape, all);
      return [];
    };
    return { inputs, outputs, where, pullback };
  }

  /** Marks of a replay: each replay number of the graph that is replayed becomes a number of its own. */
  #freshMarks(): Marks {
    const numbers = new Map<number, number>();
    const replay = (of: number): number => {
      const known = numbers.get(of);
      if (known !== undefined) return known;
      const fresh = ++this.#lastReplay;
      numbers.set(of, fresh);
      return fresh;
    };
    return { phase: "backward", replay, name: (of) => (of ? `${of}_re` : undefined) };
  }

  #materialised(outputs: readonly Value[], cts: readonly (Value | null)[]): readonly Value[] {
    return outputs.flatMap((value, i) => {
      if (!isFloat(value.type.dtype)) return [];
      return [cts[i] ?? fullLike(this.b, value, 0)];
    });
  }

  /** Cotangents of the float results in, cotangents of the active parameters out. */
  run(graph: Graph, active: readonly boolean[], seeds: readonly Seed[]): Graph {
    const { b } = this;
    const params = graph.params.map((param) => b.param(param.type, param.name));
    params.forEach((param, i) => {
      if (active[i]) this.activate(param);
    });
    const tape: Entry[] = [];
    const results = this.forward(graph, params, AS_IS, tape);
    b.phase = "backward";
    const cts = new Cotangents(b);
    results.forEach((value, i) => {
      const seed = seeds[i] ?? "param";
      if (!isFloat(value.type.dtype) || seed === "zero") return;
      const name = value.name ? `d_${value.name}` : "d_result";
      const ct = seed === "param" ? b.param(value.type, name) : b.call(full, [], { ...value.type, value: 1 }, { name });
      if (this.isActive(value)) cts.add(value, ct);
    });
    this.backward(tape, cts);
    const wanted = params.filter((param, i) => active[i] && isFloat(param.type.dtype));
    const made = wanted.map(
      (param) => cts.of(param) ?? b.call(full, [], { ...param.type, value: 0 }, { name: `d_${param.name ?? "param"}` }),
    );
    return b.finish([...results, ...made]);
  }
}

/** Where the cotangent of a float result comes from: a new parameter, ones, or there is none. */
export type Seed = "param" | "one" | "zero";

/**
 * The joint graph: params ++ cotangents of float results → results ++ cotangents of the float parameters marked active,
 * each group in its order. `seeds` may fix the cotangents of some results in place of a parameter.
 */
export function vjp(graph: Graph, active: readonly boolean[], seeds: readonly Seed[] = []): Graph {
  return new Reverse(graph).run(graph, active, seeds);
}
