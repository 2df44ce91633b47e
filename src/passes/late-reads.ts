/**
 * @file Replaces operands of late nodes (backward nodes, replays): they read a substitute for a value, which is computed before
 * the first of them. Operands of early nodes stay.
 */

import type { Node, Value } from "../ir/graph.ts";
import { newValue, nodeLike } from "../ir/graph.ts";

/** Substitutes of values, and the early nodes that are recomputed from substitutes of their inputs. */
export interface LateRules {
  instead(value: Value): Node | undefined;
  /** Views that late nodes read too. */
  isShared(node: Node): boolean;
}

export class LateReads {
  readonly #producer: ReadonlyMap<Value, Node>;
  readonly #rules: LateRules;
  readonly #known = new Map<Value, Value>();

  constructor(producer: ReadonlyMap<Value, Node>, rules: LateRules) {
    this.#producer = producer;
    this.#rules = rules;
  }

  /** A late node with its operands substituted; the nodes that compute the substitutes are appended to `nodes` first. */
  reading(node: Node, nodes: Node[]): Node {
    const inputs = node.inputs.map((input) => this.#value(input, nodes));
    return inputs.every((input, i) => input === node.inputs[i]) ? node : nodeLike(node, { inputs });
  }

  #value(value: Value, nodes: Node[]): Value {
    const known = this.#known.get(value);
    if (known) return known;
    const maker = this.#producer.get(value);
    const instead = this.#rules.instead(value);
    const node = instead ?? (maker && this.#rules.isShared(maker) ? maker : undefined);
    const made = node && this.reading(node, nodes);
    let now = value;
    if (made && (instead || made !== node)) {
      now = newValue(value.type, value.name);
      nodes.push(nodeLike(made, { outputs: [now], phase: "backward", replay: 0 }));
    }
    this.#known.set(value, now);
    return now;
  }
}
