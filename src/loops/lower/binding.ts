/** @file Shared by loops and branches: their plan step, and the addresses of their bodies' parameters. */
import { at, InternalError } from "../../base/invariant.ts";
import {
  choose,
  copy,
  type Int,
  int,
  intOp,
  type Local,
  loadAt,
  plus,
  read,
  type Statement,
  set,
  store,
  times,
} from "../../codegen/script.ts";
import type { Loop } from "../../ir/control.ts";
import type { Node, Value } from "../../ir/graph.ts";
import { byteLength } from "../../ir/type.ts";
import type { PlanStep } from "../../plan/program.ts";
import type { Body } from "./body.ts";

/** Two 4-byte integers: the row index and the result of a test. */
export const CELL_BYTES = 8;

/** A step that may write results over inputs; the input of each pair must be bound to one operand only. */
export function controlStep(
  node: Node,
  bodies: readonly Body[],
  scratch: readonly number[],
  pairs: readonly (readonly [Value, Value])[],
): PlanStep {
  const once = (value: Value): boolean => node.inputs.filter((input) => input === value).length === 1;
  return {
    node,
    reads: [...new Set(node.inputs)],
    writes: node.outputs,
    scratch,
    inPlace: pairs.filter(([from]) => once(from)),
    alias: null,
    bodies: bodies.map((body) => body.plan),
  };
}

/** Pairs of two lists, item by item. */
export const zip = <A, B>(a: readonly A[], b: readonly B[]): readonly (readonly [A, B])[] =>
  a.map((item, i) => [item, at(b, i)] as const);

/** The addresses of a body's parameters and results. */
export class Binding {
  readonly #address = new Map<Value, Int>();

  bind(params: readonly Value[], addresses: readonly Int[]): this {
    params.forEach((param, i) => {
      this.#address.set(param, at(addresses, i));
    });
    return this;
  }

  readonly of = (value: Value): Int => {
    const address = this.#address.get(value);
    if (!address) throw new InternalError(`${value.name ?? value.id} is not bound`);
    return address;
  };
}

/** Row `i` of stacks. */
export function rowsAt(
  stacks: readonly Value[],
  length: number,
  i: Int,
  address: (value: Value) => Int,
): readonly Int[] {
  return stacks.map((stack) => plus(times(i, length === 0 ? 0 : byteLength(stack.type) / length), address(stack)));
}

/** Statements before the first iteration: copy every carry into its storage. */
export function fillSlots(pairs: readonly (readonly [Value, Value])[], address: (value: Value) => Int): Statement[] {
  return pairs.flatMap(([from, to]) => copy(address(to), address(from), byteLength(from.type)));
}

/** Sets the number of iterations: the count, clamped to 0 … `length`; `length` if there is no count. */
export function iterationsOf(
  count: Value | null,
  length: number,
  local: Local,
  address: (value: Value) => Int,
): readonly Statement[] {
  if (!count) return [set(local, int(length))];
  const now = read(local);
  return [
    set(local, loadAt(address(count))),
    choose(intOp("lt", now, int(0)), [set(local, int(0))]),
    choose(intOp("lt", int(length), now), [set(local, int(length))]),
  ];
}

/** Addresses of values and of the body's workspace; the body reads the row index at `cell`. */
interface BodyAddresses {
  readonly address: (value: Value) => Int;
  readonly workspace: Int;
  readonly cell: Int;
}

/** One iteration of a loop's body at row `i`. */
export function iterationOf(
  body: Body,
  { xs, consts, last, ys, length }: Loop,
  i: Local,
  { address, workspace, cell }: BodyAddresses,
): readonly Statement[] {
  const [index, ...params] = body.region.params;
  const row = (stacks: readonly Value[]): readonly Int[] => rowsAt(stacks, length, read(i), address);
  const binding = new Binding()
    .bind(index ? [index] : [], [cell])
    .bind(params, [...last.map(address), ...row(xs), ...consts.map(address)])
    .bind(body.slots.slice(last.length), row(ys));
  const counter = index && body.reads(index) ? [store(cell, read(i))] : [];
  return [...counter, ...body.statements(binding.of, workspace)];
}
