/** @file `tidemark opt`: runs passes on graphs in a file and prints the results. */

import { guess } from "../../base/suggest.ts";
import { print } from "../../ir/print.ts";
import type { Pass } from "../../passes/pass.ts";
import { allPasses, fusedPipeline, runPasses } from "../../passes/pipeline.ts";
import { type Command, usageError } from "../command.ts";
import { readGraphs } from "../load.ts";

/** Every pass once, in the order in which they first run. */
const PASSES: readonly Pass[] = allPasses;

export function passNamed(name: string): Pass {
  const match = PASSES.find((pass) => pass.name === name);
  if (match) return match;
  const names = PASSES.map((pass) => pass.name);
  throw usageError(`there is no pass ${name}`, `${guess(name, names)}passes are ${names.join(", ")}`);
}

export const opt: Command = {
  name: "opt",
  positionals: ["PASSES", "FILE.ir"],
  summary: "run passes on the graphs of a file and print them",
  details: "PASSES is a name, a comma-separated list of names, or `all` for the whole pipeline.",
  options: {
    list: { help: "list the passes and the pipeline" },
    locations: { help: "append the source line of every node" },
  },
  run(args, io) {
    if (args.has("list")) {
      const pipeline = fusedPipeline.map((pass) => pass.name).join(", ");
      return io.out(`${PASSES.map((pass) => `${pass.name}\n`).join("")}\nall: ${pipeline}\n`);
    }
    const [names, file] = args.positionals as [string, string];
    const passes = names === "all" ? fusedPipeline : names.split(",").map((name) => passNamed(name.trim()));
    const graphs = readGraphs(file).map((graph) => {
      // one at a time: on the command line any order is allowed
      return passes.reduce((current, pass) => runPasses(current, [pass], { verify: true }), graph);
    });
    io.out(print(graphs, { locations: args.has("locations") }));
  },
};
