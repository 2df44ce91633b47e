/**
 * @file Branches and loops. What is known is followed here and leaves nothing in the program: the branch of an `If` whose condition is
 * known, the iterations of a short `Loop` whose count is known. The rest becomes `cond`, `scan` and `whileLoop`.
 */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import type { OnnxGraph } from "../../formats/onnx-file.ts";
import type { OnnxElement } from "../../formats/onnx-tensor.ts";
import type { Tensor } from "../../trace/tensor.ts";
import type { Call, Operator } from "./call.ts";
import { itemsOf, knownOf } from "./known-math.ts";
import { elementFor, Value } from "./value.ts";

/** Longer loops are loops of the program, and so are those within others that have more iterations together. */
const MOST_UNROLLED = 64;
const MOST_TOGETHER = 1024;
/** Of a loop without a count: one that never ends is an error. */
const MOST_ITERATIONS = 10_000;

const valuesOf = (tensors: readonly Tensor[], types: readonly OnnxElement[]): readonly Value[] =>
  tensors.map((tensor, i) => Value.tensor("", types[i] ?? elementFor(tensor.dtype, "int64"), tensor));

const isTrue = ({ known }: Value): boolean => known !== null && Number(known.values[0]) !== 0;

function branch(call: Call): readonly Value[] {
  const test = call.value(0);
  const [yes, no] = [call.graph("then_branch"), call.graph("else_branch")];
  if (test.known) return call.around.follow(isTrue(test) ? yes : no, []);
  let types: readonly OnnxElement[] = [];
  const follow = (graph: OnnxGraph) => (): readonly Tensor[] => {
    const results = call.around.follow(graph, []);
    types = results.map(({ type }) => type);
    return results.map(({ tensor }) => tensor);
  };
  const made = t.cond<[], readonly Tensor[]>(t.reshape(test.tensor, []), follow(yes), follow(no));
  return valuesOf(made, types);
}

/** Values of all iterations along a new first axis. */
function stacked(call: Call, rows: readonly Value[]): Value {
  const known = rows.flatMap((row) => row.known ?? []);
  const [first] = rows;
  if (first?.known && known.length === rows.length) {
    const items = known.flatMap(({ values }) => itemsOf(values));
    return Value.known("", knownOf(first.type, [rows.length, ...first.shape], items), call.around.floats);
  }
  return Value.tensor(
    "",
    first?.type ?? "float",
    t.stack(
      rows.map(({ tensor }) => tensor),
      0,
    ),
  );
}

interface LoopParts {
  readonly body: OnnxGraph;
  readonly most: number | null;
  readonly test: Value | null;
  readonly carried: readonly Value[];
}

const truth = (call: Call, value: boolean): Value => call.make("bool", [], Int32Array.of(value ? 1 : 0));

/** Follows iterations one by one; null where whether to go on is not known. */
function unrolled(call: Call, { body, most, test, carried }: LoopParts): readonly Value[] | null {
  const rows: Value[][] = [];
  let state = carried;
  let on = test ?? truth(call, true);
  const outputs = body.outputs.length - 1 - carried.length;
  for (let i = 0; (most === null || i < most) && isTrue(on); i++) {
    if (i >= MOST_ITERATIONS) call.fail(`more than ${MOST_ITERATIONS} iterations`, "give it a trip count");
    const [next, ...rest] = call.around.follow(body, [call.wholes([i], []), on, ...state], most ?? 1);
    if (!next?.known) return null;
    on = next;
    state = rest.slice(0, carried.length);
    rows.push(rest.slice(carried.length));
  }
  const stacks = Array.from({ length: outputs }, (_, k) => {
    if (rows.length > 0)
      return stacked(
        call,
        rows.map((row) => at(row, k)),
      );
    const [, ...rest] = call.around.follow(body, [call.wholes([0], []), on, ...state]);
    const one = at(rest, carried.length + k);
    return Value.tensor("", one.type, t.zeros([0, ...one.shape], one.tensor.dtype));
  });
  return [...state, ...stacks];
}

/** So many iterations, as one loop of the program; null where its condition is data. */
function counted(call: Call, { body, most, carried }: LoopParts): readonly Value[] | null {
  let types: readonly OnnxElement[] = [];
  let isCounted = true;
  const [last, ys] = t.scan(
    (state: readonly Tensor[], _: null, i: Tensor) => {
      const own = valuesOf(
        state,
        carried.map(({ type }) => type),
      );
      const [on, ...rest] = call.around.follow(body, [Value.tensor("", "int64", i), truth(call, true), ...own]);
      isCounted = on !== undefined && isTrue(on);
      types = rest.map(({ type }) => type);
      const tensors = rest.map(({ tensor }) => tensor);
      return [tensors.slice(0, carried.length), tensors.slice(carried.length)] as const;
    },
    carried.map(({ tensor }) => tensor) as readonly Tensor[],
    null,
    { length: most as number },
  );
  return isCounted ? valuesOf([...last, ...ys], types) : null;
}

/** As long as its condition holds. */
function open(call: Call, { body, test, carried }: LoopParts): readonly Value[] {
  if (body.outputs.length - 1 > carried.length) {
    call.fail(
      "a number of iterations that depends on data, with a result for each",
      "the length of such a result is not known before the program runs; bind what it depends on as a constant",
    );
  }
  const limit = call.maybe(0);
  const types = carried.map(({ type }) => type);
  const start = [
    t.zeros([], "i32"),
    test ? t.reshape(test.tensor, []) : t.full([], true),
    ...carried.map(({ tensor }) => tensor),
  ];
  const last = t.whileLoop<readonly Tensor[]>(
    ([i, on]) =>
      limit ? t.logicalAnd(on as Tensor, t.less(i as Tensor, t.reshape(limit.tensor, []))) : (on as Tensor),
    ([i, on, ...state]) => {
      const inputs = [
        Value.tensor("", "int64", i as Tensor),
        Value.tensor("", "bool", on as Tensor),
        ...valuesOf(state, types),
      ];
      const [next, ...rest] = call.around.follow(body, inputs);
      return [t.add(i as Tensor, 1), t.reshape((next as Value).tensor, []), ...rest.map(({ tensor }) => tensor)];
    },
    start,
  );
  return valuesOf(last.slice(2), types);
}

const isUnrolled = (count: number, times: number): boolean =>
  count <= MOST_UNROLLED && (count <= 1 || count * times <= MOST_TOGETHER);

function loop(call: Call): readonly Value[] {
  const body = call.graph("body");
  const [limit, test] = [call.maybe(0), call.maybe(1)];
  const parts = {
    body,
    most: limit?.known ? Number(limit.known.values[0]) : null,
    test,
    carried: call.inputs.slice(2).map((_, i) => call.value(i + 2)),
  };
  const isKnown = (limit === null || limit.known !== null) && (test === null || test.known !== null);
  if (isKnown && !(limit === null && test === null)) {
    const isNever = test !== null && !isTrue(test);
    const isShort = parts.most === null || isNever || isUnrolled(parts.most, call.around.times);
    const made = isShort ? unrolled(call, parts) : counted(call, parts);
    if (made) return made;
  }
  return open(call, parts);
}

// ---- scan ---------------------------------------------------------------------------------------------------------

interface ScanParts {
  readonly body: OnnxGraph;
  readonly states: readonly Value[];
  /** Rows along their first axis. */
  readonly stacks: readonly Value[];
}

function scanned(call: Call, { body, states, stacks }: ScanParts): { last: readonly Value[]; ys: readonly Value[] } {
  let types: readonly OnnxElement[] = [];
  const [last, ys] = t.scan(
    (state: readonly Tensor[], rows: readonly Tensor[]) => {
      const own = valuesOf(
        state,
        states.map(({ type }) => type),
      );
      const results = call.around.follow(body, [
        ...own,
        ...valuesOf(
          rows,
          stacks.map(({ type }) => type),
        ),
      ]);
      types = results.map(({ type }) => type);
      const tensors = results.map(({ tensor }) => tensor);
      return [tensors.slice(0, states.length), tensors.slice(states.length)] as const;
    },
    states.map(({ tensor }) => tensor) as readonly Tensor[],
    stacks.map(({ tensor }) => tensor) as readonly Tensor[],
  );
  return { last: valuesOf(last, types), ys: valuesOf(ys, types.slice(states.length)) };
}

/** Rows along the first axis, from the first to the last. */
function turned(call: Call, value: Value, axis: number, reverse: boolean): Value {
  const x = value.tensor;
  const first = axis === 0 ? x : t.transpose(x, [axis, ...x.shape.map((_, a) => a).filter((a) => a !== axis)]);
  if (axis >= x.rank) call.fail(`scan axis ${axis} of a tensor of rank ${x.rank}`);
  return Value.tensor(value.name, value.type, reverse ? t.flip(first, 0) : first);
}

/** And back. */
function putBack(value: Value, axis: number, reverse: boolean): Value {
  const x = reverse ? t.flip(value.tensor, 0) : value.tensor;
  const rest = x.shape.map((_, a) => a).slice(1);
  const order = [...rest.slice(0, axis), 0, ...rest.slice(axis)];
  return Value.tensor(value.name, value.type, axis === 0 ? x : t.transpose(x, order));
}

function scan(call: Call): readonly Value[] {
  const body = call.graph("body");
  const count = call.int("num_scan_inputs", 1);
  if (call.opset < 9) return batched(call, body, count);
  const inputs = call.inputs.map((_, i) => call.value(i));
  const states = inputs.slice(0, inputs.length - count);
  const flips = call.ints("scan_input_directions") ?? [];
  const stacks = inputs.slice(states.length).map((value, k) => {
    return turned(call, value, call.axis(call.ints("scan_input_axes")?.[k] ?? 0, value.rank), flips[k] === 1);
  });
  const { last, ys } = scanned(call, { body, states, stacks });
  const back = call.ints("scan_output_directions") ?? [];
  return [
    ...last,
    ...ys.map((value, k) =>
      putBack(value, call.axis(call.ints("scan_output_axes")?.[k] ?? 0, value.rank), back[k] === 1),
    ),
  ];
}

/** Version 8: every input has a batch as its first axis; one scan for each. */
function batched(call: Call, body: OnnxGraph, count: number): readonly Value[] {
  if (call.has(0)) call.fail("lengths of sequences, of version 8", "export the model with version 9 or newer");
  const inputs = call.inputs.slice(1).map((_, i) => call.value(i + 1));
  const batch = at(at(inputs, 0).shape, 0);
  const flips = call.ints("directions") ?? [];
  const runs = Array.from({ length: batch }, (_, b) => {
    const own = inputs.map((value) => Value.tensor("", value.type, t.slice(value.tensor, [b])));
    const states = own.slice(0, own.length - count);
    const stacks = own.slice(states.length).map((value, k) => turned(call, value, 0, flips[k] === 1));
    const { last, ys } = scanned(call, { body, states, stacks });
    return [...last, ...ys];
  });
  return at(runs, 0).map((first, k) =>
    Value.tensor(
      "",
      first.type,
      t.stack(
        runs.map((run) => at(run, k).tensor),
        0,
      ),
    ),
  );
}

export const CONTROL: Readonly<Record<string, Operator>> = { If: branch, Loop: loop, Scan: scan };
