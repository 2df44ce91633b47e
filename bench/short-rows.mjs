/**
 * @file Kernels on a state of short rows, [n, s], beside the same on its transpose, [s, n]: how much the place of the short
 * axis costs. Needs a build.
 *
 *   node bench/short-rows.mjs [NAME …] [--rows=200000] [--width=2] [--seconds=0.2]
 *
 * The two orders alternate in one process; times are the fastest run of each on one thread.
 */
import { parseArgs } from "node:util";
import * as tm from "../dist/api/index.js";
import "../dist/node/index.js";

const { values: options, positionals: wanted } = parseArgs({
  allowPositionals: true,
  options: {
    rows: { type: "string", default: "200000" },
    width: { type: "string", default: "2" },
    seconds: { type: "string", default: "0.2" },
  },
});
const [n, s] = [Number(options.rows), Number(options.width)];

function numbers(shape) {
  let state = 12345;
  const next = () => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return state / 0x7fffffff - 0.5;
  };
  return tm.tensor(Float32Array.from({ length: shape.reduce((a, e) => a * e, 1) }, next)).reshape(shape);
}

/** Each: a step on a state. `axis` is the short one, `part(x, i)` its element i, `back` puts it back where it is gone. */
const STEPS = {
  "elementwise, all of one shape": (x, v) => [x.add(v.mul(0.01)), v.sub(x.mul(0.01))],
  "scale of each row": (x, v, { row }) => [x.mul(row), v.add(x)],
  "offset of each column": (x, v, { column }) => [x.add(column), v.mul(column)],
  "norm of each row": (x, v, { axis, back }) => {
    const r = back(x.square().sum(axis));
    return [x.div(r.add(1)), v];
  },
  "columns apart and together": (x, v, facts) => {
    const { axis, part, back } = facts;
    const [a, b] = [part(x, 0), part(x, 1)];
    const [c, d] = [b.mul(0.5).add(a), a.mul(-0.5).add(b)];
    return [tm.concat([back(c), back(d), ...others(x, facts)], axis), v];
  },
  "largest of each row": (x, v, { axis, back }) => [x.sub(back(x.max(axis))), v],
  "softmax of each row": (x, v, { axis }) => [tm.softmax(x, axis), v],
};
const others = (x, { part, back }) => Array.from({ length: s - 2 }, (_, i) => back(part(x, i + 2)));

function program(step, target, flat) {
  const shape = flat ? [s, n] : [n, s];
  const axis = flat ? 0 : 1;
  const back = (x) => x.reshape(flat ? [1, n] : [n, 1]);
  const part = (x, i) => (flat ? x.slice([i]) : x.slice([null, i]));
  const facts = { axis, back, part };
  const fn = tm.compile((x, v, row, column) => step(x, v, { ...facts, row, column }), { donate: [0, 1], target });
  const fixed = [numbers(flat ? [1, n] : [n, 1]), numbers(flat ? [s, 1] : [1, s])];
  let state = [numbers(shape), numbers(shape)];
  let best = Number.POSITIVE_INFINITY;
  return {
    run() {
      const started = performance.now();
      state = fn(...state, ...fixed);
      best = Math.min(best, performance.now() - started);
    },
    get best() {
      return best;
    },
    reset() {
      best = Number.POSITIVE_INFINITY;
    },
  };
}

console.log(`| [${n}, ${s}] against [${s}, ${n}], ms | native | transposed | ratio | wasm | transposed | ratio |`);
console.log("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
for (const name of wanted.length > 0 ? wanted : Object.keys(STEPS)) {
  const cells = ["native", "wasm"].flatMap((target) => {
    const pair = [false, true].map((flat) => program(STEPS[name], target, flat));
    for (const one of pair) for (let i = 0; i < 3; i++) one.run();
    for (const one of pair) one.reset();
    const end = performance.now() + 1000 * Number(options.seconds);
    while (performance.now() < end) for (const one of pair) one.run();
    const [short, long] = pair.map((one) => one.best);
    return [short.toPrecision(3), long.toPrecision(3), (short / long).toPrecision(3)];
  });
  console.log(`| ${name} | ${cells.join(" | ")} |`);
}
