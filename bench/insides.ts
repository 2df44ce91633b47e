/**
 * @file Internal modules that benchmarks measure. Built together with the package (scripts/build.mjs writes
 * dist/bench/insides.js), so that benchmarks measure the published code; not part of the package.
 */

export { currentHost } from "../src/api/host.ts";
export { traceProgram } from "../src/api/traced-program.ts";
export { vjp } from "../src/autodiff/vjp.ts";
export { hostRandom } from "../src/base/random.ts";
export { machineModel } from "../src/cli/machine.ts";
export { pageOf } from "../src/cli/page.ts";
export { planLoaded } from "../src/cli/plan-figures.ts";
export { languageModel } from "../src/cli/programs/gpt.ts";
export { wasmDescription } from "../src/codegen/wasm/description.ts";
export { Assembler } from "../src/compiler/assembler.ts";
export { Build } from "../src/ir/build.ts";
export { tensorType } from "../src/ir/type.ts";
export { sharedLowering } from "../src/lower/share.ts";
export { broadcast, sum } from "../src/ops/broadcast.ts";
export { full } from "../src/ops/create.ts";
export { add, mul, relu, sub } from "../src/ops/elementwise.ts";
export { tanh } from "../src/ops/math.ts";
export { matmul } from "../src/ops/matmul.ts";
export { fuse } from "../src/passes/fuse.ts";
export { pipeline, runPasses } from "../src/passes/pipeline.ts";
export { assignBuffers } from "../src/plan/alias.ts";
export { boundOf } from "../src/plan/bound.ts";
export { orderSteps } from "../src/plan/order.ts";
export { place } from "../src/plan/place.ts";
export { chooseTarget } from "../src/runtime/choose-target.ts";
export { flattenArguments } from "../src/trace/function.ts";
export { VIEW_KINDS } from "../src/view/picture.ts";
