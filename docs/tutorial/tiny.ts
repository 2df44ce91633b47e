/**
 * @file Tidemark in one file: trace a function, differentiate its graph, plan its memory, run it in one arena. Matrices of
 * doubles, a handful of operations, no fusion and no code generation; otherwise the same stages as the compiler.
 * README.md explains it part by part.
 */

function at<T>(list: ArrayLike<T>, i: number): T {
  if (i < 0 || i >= list.length) throw new RangeError(`no element ${i} of ${list.length}`);
  return list[i] as T;
}

// ---- 1. graphs ----------------------------------------------------------------------------------------------------

/** The result of a node: rows × columns numbers, defined once. */
export interface Value {
  readonly name: string;
  readonly rows: number;
  readonly cols: number;
}

/** Everything that the stages below need to know about an operation. None of them depends on its name. */
export interface Op {
  readonly name: string;
  shape(x: readonly Value[]): readonly [rows: number, cols: number];
  /** Cotangents of the inputs, as nodes of the graph under construction; `y` is the output. */
  vjp(g: Builder, ct: Value, x: readonly Value[], y: Value): readonly Value[];
  /** Element i depends only on the inputs' elements i, so the result may be written over one of them. */
  readonly elementwise: boolean;
  /** `shapes` are those of the inputs, then of the output. */
  run(out: Float64Array, x: readonly Float64Array[], shapes: readonly Value[]): void;
}

export interface Node {
  readonly op: Op;
  readonly inputs: readonly Value[];
  readonly output: Value;
}

export interface Graph {
  readonly params: readonly Value[];
  readonly nodes: readonly Node[];
  readonly results: readonly Value[];
}

export class Builder {
  readonly params: Value[] = [];
  readonly nodes: Node[] = [];

  param(rows: number, cols: number): Value {
    const value = { name: `p${this.params.length}`, rows, cols };
    this.params.push(value);
    return value;
  }

  call(op: Op, ...inputs: readonly Value[]): Value {
    const [rows, cols] = op.shape(inputs);
    const output = { name: `v${this.nodes.length}`, rows, cols };
    this.nodes.push({ op, inputs, output });
    return output;
  }
}

// ---- 2. operations: shape, derivative and meaning of each in one place -----------------------------------------------

type Fn = (a: number, b: number) => number;

function elementwise(name: string, fn: Fn, vjp: Op["vjp"]): Op {
  return {
    name,
    elementwise: true,
    vjp,
    shape: (x) => [at(x, 0).rows, at(x, 0).cols],
    run(out, [a = out, b = a]) {
      for (let i = 0; i < out.length; i++) out[i] = fn(at(a, i), at(b, i));
    },
  };
}

const two = (x: readonly Value[]): readonly [Value, Value] => [at(x, 0), at(x, 1)];

export const add: Op = elementwise(
  "add",
  (a, b) => a + b,
  (_, ct) => [ct, ct],
);
export const sub: Op = elementwise(
  "sub",
  (a, b) => a - b,
  (g, ct) => [ct, g.call(neg, ct)],
);
export const neg: Op = elementwise(
  "neg",
  (a) => -a,
  (g, ct) => [g.call(neg, ct)],
);
// ∂(ab)/∂a = b, ∂(ab)/∂b = a
export const mul: Op = elementwise(
  "mul",
  (a, b) => a * b,
  (g, ct, x) => {
    const [a, b] = two(x);
    return [g.call(mul, ct, b), g.call(mul, ct, a)];
  },
);
// tanh' = 1 - y²: the output is enough, the input need not be kept
export const tanh: Op = elementwise("tanh", Math.tanh, (g, ct, _, y) => [
  g.call(sub, ct, g.call(mul, ct, g.call(mul, y, y))),
]);

export const transpose: Op = {
  name: "transpose",
  elementwise: false,
  shape: (x) => [at(x, 0).cols, at(x, 0).rows],
  vjp: (g, ct) => [g.call(transpose, ct)],
  run(out, [a = out], shapes) {
    const { rows, cols } = at(shapes, 1);
    for (let i = 0; i < rows; i++) for (let j = 0; j < cols; j++) out[i * cols + j] = at(a, j * rows + i);
  },
};

// Y = AB:  dA = dY Bᵀ,  dB = Aᵀ dY
export const matmul: Op = {
  name: "matmul",
  elementwise: false,
  shape: (x) => [at(x, 0).rows, at(x, 1).cols],
  vjp(g, ct, x) {
    const [a, b] = two(x);
    return [g.call(matmul, ct, g.call(transpose, b)), g.call(matmul, g.call(transpose, a), ct)];
  },
  run(out, [a = out, b = out], shapes) {
    const { rows: m, cols: k } = at(shapes, 0);
    const { cols: n } = at(shapes, 1);
    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++) {
        let sum = 0;
        for (let r = 0; r < k; r++) sum += at(a, i * k + r) * at(b, r * n + j);
        out[i * n + j] = sum;
      }
  },
};

/** All elements into one; its transpose repeats one element over a shape. */
export const sum: Op = {
  name: "sum",
  elementwise: false,
  shape: () => [1, 1],
  vjp: (g, ct, x) => [g.call(fill(at(x, 0)), ct)],
  run(out, [a = out]) {
    out[0] = a.reduce((total, e) => total + e, 0);
  },
};

export const fill = ({ rows, cols }: Value): Op => ({
  name: `fill ${rows}x${cols}`,
  elementwise: false,
  shape: () => [rows, cols],
  vjp: (g, ct) => [g.call(sum, ct)],
  run: (out, [a = out]) => out.fill(at(a, 0)),
});

// ---- 3. trace: the function runs once, on tensors that record -------------------------------------------------------

export class Tensor {
  readonly #g: Builder;
  readonly value: Value;

  constructor(g: Builder, value: Value) {
    this.#g = g;
    this.value = value;
  }

  #call(op: Op, ...others: readonly Tensor[]): Tensor {
    return new Tensor(this.#g, this.#g.call(op, this.value, ...others.map((t) => t.value)));
  }

  add = (other: Tensor): Tensor => this.#call(add, other);
  sub = (other: Tensor): Tensor => this.#call(sub, other);
  mul = (other: Tensor): Tensor => this.#call(mul, other);
  matmul = (other: Tensor): Tensor => this.#call(matmul, other);
  tanh = (): Tensor => this.#call(tanh);
  sum = (): Tensor => this.#call(sum);
}

export type Shape = readonly [rows: number, cols: number];

export function trace(fn: (...x: Tensor[]) => Tensor, shapes: readonly Shape[]): Graph {
  const g = new Builder();
  const params = shapes.map(([rows, cols]) => new Tensor(g, g.param(rows, cols)));
  return { params: g.params, nodes: g.nodes, results: [fn(...params).value] };
}

// ---- 4. reverse mode: more nodes after the forward ones -------------------------------------------------------------

/** params, cotangent of the result → result, cotangents of the params. */
export function vjp(graph: Graph): Graph {
  const g = new Builder();
  g.params.push(...graph.params);
  g.nodes.push(...graph.nodes);
  const result = at(graph.results, 0);
  const cotangents = new Map<Value, Value>([[result, g.param(result.rows, result.cols)]]);
  for (const { op, inputs, output } of [...graph.nodes].reverse()) {
    const ct = cotangents.get(output);
    if (!ct) continue;
    op.vjp(g, ct, inputs, output).forEach((contribution, i) => {
      const x = at(inputs, i);
      const before = cotangents.get(x);
      cotangents.set(x, before ? g.call(add, before, contribution) : contribution);
    });
  }
  const zero = (x: Value): Value => g.call(sub, x, x);
  return {
    params: g.params,
    nodes: g.nodes,
    results: [result, ...graph.params.map((p) => cotangents.get(p) ?? zero(p))],
  };
}

/** Nodes that some result depends on. */
export function dce(graph: Graph): Graph {
  const needed = new Set(graph.results);
  const nodes: Node[] = [];
  for (const node of [...graph.nodes].reverse()) {
    if (!needed.has(node.output)) continue;
    nodes.unshift(node);
    for (const input of node.inputs) needed.add(input);
  }
  return { ...graph, nodes };
}

// ---- 5. plan: lifespans, shared storage, offsets --------------------------------------------------------------------

/** Storage of some values, one after the other; live during steps [start, end). Sizes and offsets are in elements. */
export interface Buffer {
  readonly values: Value[];
  readonly start: number;
  end: number;
  readonly length: number;
  offset: number;
}

export interface Plan {
  readonly graph: Graph;
  readonly bufferOf: ReadonlyMap<Value, Buffer>;
  readonly buffers: readonly Buffer[];
  readonly height: number;
  readonly bound: number;
}

/** The step after which a value has no more readers; results are read after the last step. */
function lastReads({ nodes, results }: Graph): ReadonlyMap<Value, number> {
  const ends = new Map<Value, number>();
  nodes.forEach(({ inputs, output }, step) => {
    ends.set(output, step + 1);
    for (const input of inputs) ends.set(input, step + 1);
  });
  for (const result of results) ends.set(result, nodes.length + 1);
  return ends;
}

/** A result takes over the buffer of an operand that it reads last, if the operation allows it. */
function share(graph: Graph): { readonly bufferOf: Map<Value, Buffer>; readonly buffers: Buffer[] } {
  const ends = lastReads(graph);
  const bufferOf = new Map<Value, Buffer>();
  const buffers: Buffer[] = [];
  const open = (value: Value, start: number): void => {
    const length = value.rows * value.cols;
    const buffer = { values: [value], start, end: ends.get(value) ?? start + 1, length, offset: -1 };
    buffers.push(buffer);
    bufferOf.set(value, buffer);
  };
  for (const param of graph.params) open(param, 0);
  graph.nodes.forEach(({ op, inputs, output }, step) => {
    const dying = inputs.map((x) => bufferOf.get(x)).find((b) => b?.end === step + 1);
    if (op.elementwise && dying) {
      dying.values.push(output);
      dying.end = ends.get(output) ?? step + 1;
      bufferOf.set(output, dying);
    } else open(output, step);
  });
  return { bufferOf, buffers };
}

/** Large buffers first, each into the lowest gap between the buffers that are live at the same time. */
function place(buffers: readonly Buffer[]): number {
  const placed: Buffer[] = [];
  for (const buffer of [...buffers].sort((a, b) => b.length - a.length)) {
    const meets = placed.filter((b) => b.start < buffer.end && buffer.start < b.end);
    let offset = 0;
    for (const b of meets.sort((p, q) => p.offset - q.offset)) {
      if (b.offset - offset >= buffer.length) break;
      offset = Math.max(offset, b.offset + b.length);
    }
    buffer.offset = offset;
    placed.push(buffer);
  }
  return Math.max(0, ...buffers.map((b) => b.offset + b.length));
}

/** The largest number of elements live at one step, a lower bound of every placement. */
function boundOf(buffers: readonly Buffer[], steps: number): number {
  const live = (step: number): number =>
    buffers.reduce((n, b) => n + (b.start <= step && step < b.end ? b.length : 0), 0);
  return Math.max(...Array.from({ length: steps + 1 }, (_, step) => live(step)));
}

export function planOf(graph: Graph): Plan {
  const { bufferOf, buffers } = share(graph);
  const height = place(buffers);
  return { graph, bufferOf, buffers, height, bound: boundOf(buffers, graph.nodes.length) };
}

/** The program with addresses. */
export function printPlan({ graph, bufferOf, buffers, height, bound }: Plan): string {
  const range = (v: Value): string => {
    const b = bufferOf.get(v);
    const over = b && b.values.indexOf(v) > 0 ? ` over ${at(b.values, b.values.indexOf(v) - 1).name}` : "";
    return b ? `@ b${buffers.indexOf(b)}[${b.offset}:${b.offset + b.length}]${over}` : "";
  };
  const lines = [
    ...graph.params.map((p) => [`${p.name}: ${p.rows}x${p.cols}`, range(p)]),
    ...graph.nodes.map(({ op, inputs, output: y }) => [
      `${y.name}: ${y.rows}x${y.cols} = ${op.name}(${inputs.map((x) => x.name).join(", ")})`,
      range(y),
    ]),
  ];
  const width = Math.max(...lines.map(([left = ""]) => left.length));
  const total = buffers.reduce((n, b) => n + b.length * b.values.length, 0);
  return [
    `${height} elements in ${buffers.length} buffers, bound ${bound}, ${total} without reuse`,
    ...lines.map(([left = "", right = ""]) => `  ${left.padEnd(width)} ${right}`),
    `  return ${graph.results.map((r) => r.name).join(", ")}`,
  ].join("\n");
}

// ---- 6. run: one arena, no allocation -------------------------------------------------------------------------------

export function run(
  plan: Plan,
  args: readonly (readonly number[])[],
  arena: Float64Array = new Float64Array(plan.height),
): readonly number[][] {
  const view = (value: Value): Float64Array => {
    const { offset, length } = plan.bufferOf.get(value) ?? { offset: 0, length: 0 };
    return arena.subarray(offset, offset + length);
  };
  for (const [i, param] of plan.graph.params.entries()) view(param).set(at(args, i));
  for (const { op, inputs, output } of plan.graph.nodes) op.run(view(output), inputs.map(view), [...inputs, output]);
  return plan.graph.results.map((result) => [...view(result)]);
}
