/**
 * @file What the browser test of threads runs, in a page and in a worker of that page: a program on several threads until
 * workers have had a part in it, and some steps of a training.
 */

import { currentHost } from "../../src/api/host.ts";
import { compile, type Tensor } from "../../src/api/index.ts";
import { loadGraph } from "../../src/api/load-graph.ts";
import { at } from "../../src/base/invariant.ts";
import { TEAM } from "../../src/codegen/wasm/team.ts";
import { Build } from "../../src/ir/build.ts";
import { elementsOf, tensorType } from "../../src/ir/type.ts";
import { exp } from "../../src/ops/math.ts";
import { matmul } from "../../src/ops/matmul.ts";
import { batchTensors } from "../../src/playground/model.ts";
import { MODELS } from "../../src/playground/models.ts";
import { chooseTarget } from "../../src/runtime/choose-target.ts";
import { hostMemory } from "./host-memory.ts";

const SIDE = 256;
const TYPE = tensorType("f32", [SIDE, SIDE]);

export interface Outcome {
  readonly threads: number;
  readonly note: string | null;
  /** Whether workers have computed pieces. */
  readonly helped: boolean;
  /** Of all results, as one text; the same in every run. */
  readonly bits: string;
  readonly losses: readonly number[];
}

/** FNV-1a over bytes. */
function hash(bytes: Uint8Array): string {
  let h = 0x811c9dc5;
  for (const byte of bytes) h = Math.imul(h ^ byte, 0x01000193);
  return (h >>> 0).toString(16);
}

function losses(threads: number): readonly number[] {
  const model = at(MODELS, 1);
  const step = compile(model.step as (...args: never[]) => readonly [object, Tensor], { donate: [0], threads });
  let state = model.init();
  return [0, 1, 2].map((i) => {
    const [next, loss] = step(...([state, ...batchTensors(model, model.batch(i))] as never[]));
    state = next;
    return loss.item();
  });
}

async function compute(threads: number): Promise<Outcome> {
  const { target, note } = chooseTarget(currentHost(), "wasm", { threads });
  const b = new Build("product");
  const x = b.param(TYPE);
  const product = b.call(matmul, [x, b.call(exp, [x], {})], { ta: false, tb: false });
  const executable = loadGraph(b.finish([product]), { target });
  const [input] = executable.placed.params;
  const [result] = executable.placed.results;
  const helped = (): boolean =>
    target.threads > 1 && new Int32Array(hostMemory(executable.memory).buffer)[TEAM.helped / 4] !== 0;
  const seen = new Set<string>();
  // Workers of a page start when the page has a moment.
  for (let runs = 0; runs < 3 || (target.threads > 1 && !helped() && runs < 5000); runs++) {
    const data = Float32Array.from({ length: elementsOf(TYPE.shape) }, (_, i) => ((i * 7919) % 1013) / 1013);
    executable.write(TYPE, input as number, data);
    executable.run();
    const bytes = new Uint8Array(executable.read(TYPE, result as number).buffer);
    seen.add(hash(bytes));
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return { threads: target.threads, note, helped: helped(), bits: [...seen].join(), losses: losses(threads) };
}

interface Scope {
  compute: typeof compute;
  onmessage: ((event: { readonly data: number }) => void) | null;
  postMessage(outcome: Outcome): void;
}

const scope = globalThis as unknown as Scope;
scope.compute = compute;
if (!("document" in globalThis)) {
  scope.onmessage = ({ data }) => {
    void compute(data).then((outcome) => scope.postMessage(outcome));
  };
}
