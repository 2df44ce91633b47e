/**
 * @file Nodes have one layout in memory, whatever made them. Every pass reads every node: where each pass leaves a layout of its own
 * behind, the engine looks properties up by name.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import "../src/api/index.ts";
import { ALL_PROGRAMS } from "../src/cli/programs/built-in.ts";
import type { Graph, Node } from "../src/ir/graph.ts";
import { allNodes } from "../src/ir/walk.ts";
import { fusedPipeline, runPasses } from "../src/passes/pipeline.ts";
import { traceFunction } from "../src/trace/function.ts";
import type { Tree } from "../src/trace/tree.ts";

setFlagsFromString("--allow-natives-syntax");
const haveOneLayout = runInNewContext("(a, b) => %HaveSameMap(a, b)") as (a: object, b: object) => boolean;
// compiled when it is first called
haveOneLayout({}, {});
setFlagsFromString("--no-allow-natives-syntax");

/** How many layouts the nodes of a graph have. */
function layoutsOf(graph: Graph): number {
  const found: Node[] = [];
  for (const node of allNodes(graph)) if (!found.some((other) => haveOneLayout(other, node))) found.push(node);
  return found.length;
}

describe("nodes", () => {
  it.each(["mlp", "gpt"])("of %s have one layout after every pass", (name) => {
    const program = ALL_PROGRAMS.find((one) => one.name === name);
    if (!program) throw new Error(`there is no program ${name}`);
    const { graph } = traceFunction(program.step as never, [program.init(), ...program.batch()] as readonly Tree[]);
    const layouts: [string, number][] = [["trace", layoutsOf(graph)]];
    runPasses(graph, fusedPipeline, { observe: (pass, made) => layouts.push([pass.name, layoutsOf(made)]) });
    expect(layouts).toEqual(layouts.map(([pass]) => [pass, 1]));
  });
});
