/**
 * @file Reverse mode as a transformation of graphs: params ++ cotangents of float results → results ++ cotangents of the
 * active parameters. The joint graph holds the forward nodes first, as they were, then the backward nodes; both are
 * ordinary operations, so the result can be planned, printed and differentiated again.
 *
 *   x ── f ── y          x ── f ── y
 *                →       │         │
 *                        d_x ─ fᵀ ─ d_y
 *
 * The forward sweep copies nodes and leaves one tape entry for each node that a derivative flows through; the backward
 * sweep runs the entries in reverse. Cotangents of a value that is used in several places are summed as they arrive, the
 * last use first, one `add` each, so that a planner may sum in place. A cotangent of zero is null and never a tensor.
 *
 * No decision is made here about which values are kept: a forward value that a backward node reads is an edge of the graph.
 * The one exception is a checkpointed call: its nodes are appended once more before their backward, under a new number
 * (`replay`), so that only the call's inputs cross from forward to backward.
 */

import { at, invariant } from "../base/invariant.ts";
import { Build } from "../ir/build.ts";
import { loopOf, reversalOf } from "../ir/control.ts";
import type { Graph, Node, Phase, Value } from "../ir/graph.ts";
import { newValue, nodeLike } from "../ir/graph.ts";
import { cotangentWithin } from "../ir/label.ts";
import { alike } from "../ir/variance.ts";
import { isFloat } from "../kernel/dtype.ts";
import { broadcast } from "../ops/broadcast.ts";
import { full, fullAttrs, fullLike } from "../ops/create.ts";
import { reshape } from "../ops/movement.ts";
import type { RewindAttrs } from "../ops/rewind.ts";
import { where as select } from "../ops/select.ts";
import { activeInputs } from "./activity.ts";
import { maxReplay } from "./build-aids.ts";
import { Cotangents, type Joint, type JointRequest, type Pullback, type Seed } from "./joint.ts";
import { jvp } from "./jvp.ts";
import { pullbackOfNode } from "./local.ts";
import { regionRule } from "./region.ts";
import { expandRewind, forwardLoop, isTranspose } from "./rewind-loops.ts";
import { reverseLoop } from "./vjp-loops.ts";
import { pullSwitch } from "./vjp-switch.ts";

/** Inputs and outputs of a step of the tape. */
interface Span {
  readonly inputs: readonly Value[];
  readonly outputs: readonly Value[];
  readonly where: string | undefined;
  readonly within: string | undefined;
}

/** One step of the tape. */
interface Entry extends Span {
  readonly pullback: Pullback;
}

/** The marks that the forward sweep gives to copied nodes. */
interface Marks {
  readonly phase: Phase | null;
  replay(of: number): number;
  name(of: string | undefined): string | undefined;
}

const AS_IS: Marks = { phase: null, replay: (of) => of, name: (of) => of };

/** Marks for the nodes of an inlined call: those of the call. */
function inside(node: Node, marks: Marks): Marks {
  const phase = marks.phase ?? (node.phase === "forward" ? null : node.phase);
  return { ...marks, phase, replay: (of) => marks.replay(of === 0 ? node.replay : of) };
}

class Reverse {
  readonly b: Build;
  readonly #active = new Set<Value>();
  #lastReplay: number;
  /** Per value that has a cotangent, the part that the nodes of that belong to. */
  readonly #withins = new Map<Value, string>();

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

  readonly #cotangentWithin = (value: Value): string => {
    const known = this.#withins.get(value);
    if (known !== undefined) return known;
    const weight = (param: Value): string | undefined => (this.isActive(param) ? param.name : undefined);
    const made = cotangentWithin(value, { producer: (v) => this.b.producer(v), weight });
    this.#withins.set(value, made);
    return made;
  };

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
    const rule = regionRule(node);
    const { where, within } = node;
    let outputs: readonly Value[];
    switch (rule?.kind) {
      // activity inside decides which results are active
      case "inline":
        return this.forward(rule.body, inputs, inside(node, marks), tape);
      case "gated":
        return this.#gated(rule.body, nodeLike(node, { inputs }), marks, tape);
      case "custom_vjp": {
        const made = this.b.inline(rule.forward, inputs, this.#override(node, marks));
        const saved = made.slice(rule.results);
        outputs = this.#distinct(made.slice(0, rule.results), inputs);
        tape.push(this.#customEntry(rule.backward, saved, { inputs, outputs, where, within }));
        for (const value of outputs) this.activate(value);
        return [...outputs, ...saved];
      }
      case "custom_jvp":
        outputs = this.#copy(node, inputs, marks).outputs;
        tape.push(this.#transposedEntry(rule.tangent, active, { inputs, outputs, where, within }));
        break;
      case "replay":
        outputs = this.#copy(node, inputs, marks).outputs;
        tape.push(this.#replayEntry(rule.body, { inputs, outputs, where, within }));
        break;
      case "control": {
        const { control } = rule;
        if (control.kind !== "reversal") return this.#control(nodeLike(node, { inputs }), marks, tape);
        if (!isTranspose(node, control.reversal)) {
          return this.forward(expandRewind(node, control.reversal), inputs, inside(node, marks), tape);
        }
        outputs = this.#copy(node, inputs, marks).outputs;
        tape.push(this.#transposeEntry(nodeLike(node, { inputs }), outputs));
        break;
      }
      default: {
        const copy = this.#copy(node, inputs, marks);
        outputs = copy.outputs;
        const pulled = { node: copy, active, cotangentWithin: this.#cotangentWithin };
        tape.push({ inputs, outputs, where, within, pullback: (cts) => pullbackOfNode(this.b, pulled, cts) });
      }
    }
    for (const value of outputs) this.activate(value);
    return outputs;
  }

  /** A loop or branch: its derivative is another one. */
  #control(node: Node, marks: Marks, tape: Entry[]): readonly Value[] {
    const { inputs } = node;
    const active = inputs.map((value) => this.isActive(value));
    const context = { b: this.b, joint: jointOf, append: (made: Node) => this.#copy(made, made.inputs, marks) };
    const loop = loopOf(node);
    const reversed = loop ? reverseLoop(context, node, loop, active) : pullSwitch(context, node, active);
    const { outputs, activeOutputs, pullback } = reversed;
    tape.push({ inputs, outputs, where: node.where, within: node.within, pullback });
    outputs.forEach((value, i) => {
      if (activeOutputs[i]) this.activate(value);
    });
    return outputs;
  }

  /** Copies of inputs as separate values: their cotangents pass on to the inputs where the first result is true. */
  #gated(body: Graph, node: Node, marks: Marks, tape: Entry[]): readonly Value[] {
    let counts: Value | undefined;
    const own = node.inputs.map((value) => {
      if (!this.isActive(value)) return value;
      const copy = this.b.call(reshape, [value], { shape: value.type.shape }, this.#override(node, marks));
      this.activate(copy);
      const pullback: Pullback = ([ct]) => {
        if (!ct || !counts) return [];
        const mask = this.b.call(broadcast, [counts], { axes: [], shape: ct.type.shape });
        return [this.b.call(select, [mask, ct, fullLike(this.b, ct, 0)], {})];
      };
      tape.push({ inputs: [value], outputs: [copy], where: node.where, within: node.within, pullback });
      return copy;
    });
    const results = this.forward(body, own, inside(node, marks), tape);
    counts = results[0];
    return results;
  }

  /** A result that is an input or occurs twice would share its cotangent: it becomes a separate value. */
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
    const copy = nodeLike(node, {
      inputs,
      outputs,
      phase: marks.phase ?? node.phase,
      replay: marks.replay(node.replay),
    });
    this.b.append(copy);
    return copy;
  }

  /** Runs a tape backwards into `cts`. */
  backward(tape: readonly Entry[], cts: Cotangents): void {
    for (const entry of [...tape].reverse()) {
      const given = entry.outputs.map((value) => cts.of(value));
      if (given.every((ct) => ct === null)) continue;
      this.b.where = entry.where;
      this.b.within = entry.within;
      const made = entry.pullback(given, cts);
      entry.inputs.forEach((value, i) => {
        const contribution = made[i];
        if (!contribution || !this.isActive(value)) return;
        this.b.within = this.#cotangentWithin(value);
        cts.add(value, contribution);
      });
    }
    this.b.where = undefined;
    this.b.within = undefined;
  }

  /** backward region: residuals ++ cotangents of the float results → cotangents of the inputs. */
  #customEntry(backward: Graph, residuals: readonly Value[], { inputs, outputs, where, within }: Span): Entry {
    const pullback = (cts: readonly (Value | null)[]): readonly (Value | null)[] => {
      const given = this.#materialised(outputs, cts);
      const made = this.b.inline(backward, [...residuals, ...given], { phase: "backward", where });
      let next = 0;
      return inputs.map((value) => (isFloat(value.type.dtype) ? (made[next++] ?? null) : null));
    };
    return { inputs, outputs, where, within, pullback };
  }

  /** tangent region: inputs ++ tangents → tangents, linear in the latter; its reverse at any tangent is its transpose. */
  #transposedEntry(region: Graph, active: readonly number[], { inputs, outputs, where, within }: Span): Entry {
    const floats = inputs.flatMap((value, i) => (isFloat(value.type.dtype) ? [i] : []));
    const floatOutputs = outputs.flatMap((value, o) => (isFloat(value.type.dtype) ? [o] : []));
    const pullback = (cts: readonly (Value | null)[]): readonly (Value | null)[] => {
      const tangents = floats.map((i) => fullLike(this.b, inputs[i] as Value, 0));
      // only the tangents are active in this sweep
      const held = inputs.filter((value) => this.#active.delete(value));
      floats.forEach((i, t) => {
        if (!active.includes(i)) return;
        this.activate(tangents[t] as Value);
        // The cotangent of a tangent is that of its value.
        this.#withins.set(tangents[t] as Value, this.#cotangentWithin(inputs[i] as Value));
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
    return { inputs, outputs, where, within, pullback };
  }

  /** The reverse of a transposed loop of tangents: that loop, and its own reverse (rewind-loops.ts). */
  #transposeEntry(node: Node, outputs: readonly Value[]): Entry {
    const { inputs, where, within } = node;
    const reversal = reversalOf(node);
    invariant(reversal, () => `${node.op.name} is not the reverse of a loop`);
    const { count, states: carries, adjoints, consts } = reversal;
    const { wrt } = node.attrs as RewindAttrs;
    const pullback = (cts: readonly (Value | null)[]): readonly (Value | null)[] => {
      // Each as a separate value, so that its cotangent is kept apart from others.
      const own = [...carries, ...consts].map((value) => {
        if (!this.isActive(value)) return value;
        const copy = this.b.call(reshape, [value], { shape: value.type.shape });
        this.activate(copy);
        return copy;
      });
      const tangents = own.map(({ type }, i) => {
        const ct = cts[wrt.indexOf(i)];
        return ct ? alike(this.b, ct, type) : null;
      });
      const pushed = jvp(forwardLoop(node, reversal), [false, ...tangents.map((tangent) => tangent !== null)]);
      const tape: Entry[] = [];
      const given = [count, ...own, ...tangents.filter((tangent) => tangent !== null)];
      const made = this.forward(pushed, given, { ...AS_IS, phase: "backward" }, tape);
      const floats = carries.flatMap(({ type }, k) => (isFloat(type.dtype) ? [k] : []));
      const last = (k: number): Value => made[carries.length + floats.indexOf(k)] as Value;
      const sums = new Cotangents(this.b);
      adjoints.forEach((adjoint, i) => {
        const k = at(wrt, i);
        if (k < carries.length && this.isActive(last(k))) sums.add(last(k), adjoint);
      });
      this.backward(tape, sums);
      const reached = own.map((value) => sums.of(value));
      const [c, k] = [reached.slice(0, carries.length), reached.slice(carries.length)];
      return [
        null,
        ...c,
        ...adjoints.map((_, i) => (at(wrt, i) < carries.length ? last(at(wrt, i)) : (cts[i] ?? null))),
        ...k,
      ];
    };
    return { inputs, outputs, where, within, pullback };
  }

  /** Continues the sums of the inputs, so the order of additions is that of a plain call. */
  #replayEntry(body: Graph, { inputs, outputs, where, within }: Span): Entry {
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
    return { inputs, outputs, where, within, pullback };
  }

  /** Marks of a replay: each replay number of the graph that is replayed becomes a new number. */
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

  /** The graph's nodes, then those from the cotangents of its results to those of its active parameters. */
  joint(graph: Graph, { active, seeds, sums = [] }: JointRequest): Joint {
    const { b } = this;
    const params = graph.params.map((param) => b.param(param.type, param.name));
    params.forEach((param, i) => {
      if (active[i]) this.activate(param);
    });
    const tape: Entry[] = [];
    const results = this.forward(graph, params, AS_IS, tape);
    const forwardNodes = b.nodes.length;
    b.phase = "backward";
    const cts = new Cotangents(b);
    const sumParams = params.map((param, i) => (sums[i] ? b.param(param.type, hintOf(param, "sum")) : null));
    params.forEach((param, i) => {
      const sum = sumParams[i];
      if (sum) cts.add(param, sum);
    });
    const seedParams = results.map((value, i) => {
      const seed = seeds[i] ?? "param";
      if (!isFloat(value.type.dtype) || seed === "zero") return null;
      const name = hintOf(value, "result");
      const ct = seed === "param" ? b.param(value.type, name) : b.call(full, [], fullAttrs(value.type, 1), { name });
      if (this.isActive(value)) cts.add(value, ct);
      return seed === "param" ? ct : null;
    });
    this.backward(tape, cts);
    const cotangents = params.map((param, i) => (active[i] ? cts.of(param) : null));
    return { b, params, results, forwardNodes, seedParams, sumParams, cotangents };
  }
}

const hintOf = (value: Value, otherwise: string): string => `d_${value.name ?? otherwise}`;

/** A graph and its reverse, in which a cotangent of zero is null. */
export function jointOf(graph: Graph, request: JointRequest): Joint {
  return new Reverse(graph).joint(graph, request);
}

/**
 * The joint graph: params ++ cotangents of float results → results ++ cotangents of the float parameters marked active,
 * each group in its order. `seeds` may fix the cotangents of some results in place of a parameter.
 */
export function vjp(graph: Graph, active: readonly boolean[], seeds: readonly Seed[] = []): Graph {
  const { b, params, results, cotangents } = jointOf(graph, { active, seeds });
  const made = params.flatMap((param, i) => {
    if (!active[i] || !isFloat(param.type.dtype)) return [];
    return [cotangents[i] ?? b.call(full, [], fullAttrs(param.type, 0), { name: hintOf(param, "param") })];
  });
  return b.finish([...results, ...made]);
}
