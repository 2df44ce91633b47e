/** @file What branches return under `autocast`, where one of them has come to bf16 and another to f32. */
import { at } from "../base/invariant.ts";
import { Build } from "../ir/build.ts";
import { inDtype } from "../ops/select.ts";
import type { TracedGraph } from "../trace/trace.ts";
import { autocastMode, metType } from "./autocast-mode.ts";

/** Floats that differ between branches where automatic casts may convert them have one type. */
export function inMetTypes(traced: readonly TracedGraph[]): readonly TracedGraph[] {
  const mode = autocastMode();
  if (!mode) return traced;
  const types = at(traced, 0).graph.results.map((_, i) =>
    metType(
      traced.map(({ graph }) => at(graph.results, i).type),
      mode,
    ),
  );
  return traced.map(({ graph, captures }) => {
    const b = new Build(graph.name);
    const params = graph.params.map(({ type, name }) => b.param(type, name));
    const results = b.inline(graph, params).map((value, i) => inDtype(b, value, types[i] ?? value.type.dtype));
    return { graph: b.finish(results), captures };
  });
}
