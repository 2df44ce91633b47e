/** @file `tidemark trace`: the graph of a program's step as it was traced, or after a pass. */
import type { Graph } from "../../ir/graph.ts";
import { print } from "../../ir/print.ts";
import { fusedPipeline, runPasses } from "../../passes/pipeline.ts";
import { traceFunction } from "../../trace/function.ts";
import type { Command } from "../command.ts";
import { CONTRACT } from "../contract.ts";
import { type Loaded, loadProgram } from "../load.ts";
import { passNamed } from "./opt.ts";

function graphOf(loaded: Loaded): Graph {
  if (loaded.kind === "graph") return loaded.graph;
  const { program } = loaded;
  return traceFunction(program.step, [program.init(), ...program.batch()]).graph;
}

export const trace: Command = {
  name: "trace",
  positionals: ["PROGRAM"],
  summary: "print the graph of a program's step",
  details: CONTRACT,
  options: {
    "print-after": { value: "PASS", help: "print the graph after each run of this pass, or of every pass (`all`)" },
    locations: { help: "append the source line of every node" },
  },
  async run(args, io) {
    const wanted = args.value("print-after");
    if (wanted !== undefined && wanted !== "all") passNamed(wanted);
    const options = { locations: args.has("locations") };
    const graph = graphOf(await loadProgram(args.positionals[0] as string));
    if (wanted === undefined) return io.out(print(graph, options));
    const runs = new Map<string, number>();
    runPasses(graph, fusedPipeline, {
      verify: true,
      observe({ name }, after) {
        const run = (runs.get(name) ?? 0) + 1;
        runs.set(name, run);
        if (wanted !== "all" && wanted !== name) return;
        const of = fusedPipeline.filter((pass) => pass.name === name).length;
        io.out(`// after ${name}${of > 1 ? `, run ${run} of ${of}` : ""}\n${print(after, options)}\n`);
      },
    });
  },
};
