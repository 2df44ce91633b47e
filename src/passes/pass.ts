/** @file A pass: a named pure function on graphs, deterministic; results may be cached by graph, which nothing can observe. */
import type { Graph } from "../ir/graph.ts";

export interface Pass {
  /** Like its file; also the name of its `.ir` tests. */
  readonly name: string;
  run(graph: Graph): Graph;
  /** Passes that must have run before this one wherever both are used. */
  readonly after?: readonly string[];
}
