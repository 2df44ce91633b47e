/**
 * @file `tidemark calibrate`: measures this machine once, so that predicted times are those of this machine. The result
 * is stored for `plan`, `bench` and all other commands that predict.
 */

import { currentHost } from "../../api/host.ts";
import { table } from "../../plan/table.ts";
import { chooseTarget, DEFAULT_TARGET } from "../../runtime/choose-target.ts";
import { PRODUCTS } from "../../runtime/device.ts";
import { calibrate as measure } from "../calibration.ts";
import { type Command, choice, writeJson } from "../command.ts";
import { cpuName, machinePath, ratesText, storeModel } from "../machine.ts";
import { awaitTarget, MEASURED_TARGETS, TARGET_OPTIONS } from "../target-settings.ts";

/** Rough figures in a fraction of a second, with a stream that fits the caches. */
const QUICK = { msEach: 5, streamBytes: 6 * 2 ** 20 };

export const calibrate: Command = {
  name: "calibrate",
  positionals: [],
  summary: "measure this machine's speed once, for predicted times",
  details: [
    "Takes about three seconds; close other programs first. The rates are stored in TIDEMARK_CACHE,",
    "else in XDG_CACHE_HOME/tidemark, else in ~/.cache/tidemark, and apply to this processor and this",
    "major version of Node. Without them, predictions use the rates of a typical server core.",
  ].join("\n"),
  options: {
    target: {
      value: "NAME",
      help: `the target to measure: ${MEASURED_TARGETS.join(", ")}; default: ${DEFAULT_TARGET}`,
    },
    products: TARGET_OPTIONS.products,
    quick: { help: "less accurate, in a fraction of a second" },
    json: { help: "print one line of JSON" },
  },
  async run(args, io) {
    const started = performance.now();
    const products = choice(args, "products", PRODUCTS);
    const name = choice(args, "target", MEASURED_TARGETS);
    await awaitTarget(name);
    const { target } = chooseTarget(currentHost(), name, { products });
    const { model, samples } = await measure({ target, ...(args.has("quick") ? QUICK : {}) });
    const ms = performance.now() - started;
    const path = machinePath(model);
    const problem = storeModel(model, new Date());
    if (problem !== null) {
      io.err(`the rates are not stored: ${problem}; set TIDEMARK_CACHE to another folder\n`);
    }
    const storedAt = problem === null ? path : null;
    if (args.has("json")) {
      writeJson(io, {
        ...{ cpu: cpuName(), node: process.versions.node, target: model.name },
        kept: storedAt,
        ms,
        model,
        samples,
      });
      return;
    }
    const rows = samples.map(({ name, seconds }) => [name, `${(seconds * 1e6).toFixed(1)} µs`]);
    const lines = table(rows, ["left", "right"]).map((line) => `  ${line}\n`);
    io.out(`${model.name} on ${cpuName()}\n${lines.join("")}${ratesText(model)}\n`);
    if (storedAt !== null) io.out(`stored in ${storedAt}\n`);
  },
};
