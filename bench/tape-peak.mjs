/**
 * @file Memory of a training step that is recorded as it runs: on a tape, in TensorFlow.js and in PyTorch, each in a process of its own.
 *
 *   node bench/tape-peak.mjs [NAME] [--steps=10] [--harness=FOLDER]      default: gpt
 *
 * `tensors` is the most that the tool's own allocator had in use (for the tape: reserved), with parameters and optimizer state; `process` is the
 * most that was resident, `over import` that without what was resident after the import. Needs a build, and what bench/peers.mjs needs.
 */
import { parseArgs } from "node:util";
import { HARNESS, installPeers, PROGRAMS, prepareHarness, recorded, runOnce } from "./peer-runners.mjs";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { steps: { type: "string", default: "10" }, harness: { type: "string", default: HARNESS } },
});
const [name = "gpt"] = positionals;
const [workload] = Object.entries(PROGRAMS).find(([, program]) => program === name) ?? [];
if (!workload) throw new Error(`there is no program ${name}: ${Object.values(PROGRAMS).join(", ")}`);
prepareHarness(options.harness);
const missing = installPeers();
if (missing) throw new Error(missing);

const mb = (bytes) => (bytes === undefined || bytes === null ? "–" : (bytes / 1e6).toFixed(1));
console.log(`| ${name}, MB | tensors | over import | process | loss after a step |`);
console.log("| --- | ---: | ---: | ---: | ---: |");
for (const runner of recorded({ steps: options.steps })) {
  const found = runOnce(runner, workload);
  if (found.error) throw new Error(`${runner.name}: ${found.error}`);
  const { ownPeakBytes, peakRssBytes, baselineRssBytes, losses } = found;
  const cells = [ownPeakBytes, peakRssBytes, peakRssBytes + baselineRssBytes].map(mb);
  console.log(`| ${[runner.name, ...cells, losses[1].toFixed(5)].join(" | ")} |`);
}
