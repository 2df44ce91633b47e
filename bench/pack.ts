/**
 * @file Packs published instances and prints the results: `npm run bench:pack [-- options] [FILE.csv …]`.
 *
 *   --timeout S     limit per instance, in seconds of user time (10)
 *   --capacity N    stop at this height; `name` takes it from the file name (A.1048576.csv), where there is one
 *   --room X        that capacity times X
 *   --seed N
 *   --set NAME=VALUE    a switch of the search (src/plan/place/params.ts), any number of times: --set memoize=false
 *
 * Without files: all of tests/instances and, where they are, those of ../shared; larger ones come from
 * bench/pack-instances.mjs. Times are user time of the process, so that other work on the machine does not count.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { boundOf } from "../src/plan/bound.ts";
import { parseCsv } from "../src/plan/csv.ts";
import { DEFAULT_PARAMS } from "../src/plan/place/params.ts";
import { searchPlacement } from "../src/plan/place/search.ts";
import { heightOf, type Problem } from "../src/plan/problem.ts";

const FOLDERS = ["tests/instances/minimalloc", "tests/instances/dsa", "../shared/bench/instances/dsa-remat"];

const { values, positionals } = parseArgs({
  options: {
    timeout: { type: "string", default: "10" },
    capacity: { type: "string" },
    room: { type: "string", default: "1" },
    seed: { type: "string", default: "1" },
    set: { type: "string", multiple: true, default: [] },
  },
  allowPositionals: true,
});

const params = Object.fromEntries(
  values.set.map((setting) => {
    const [name = "", value = ""] = setting.split("=");
    if (!(name in DEFAULT_PARAMS)) throw new Error(`there is no switch "${name}"`);
    return [name, JSON.parse(value)];
  }),
);

function allFiles(): string[] {
  return FOLDERS.flatMap((folder) => {
    if (!existsSync(folder)) console.log(`(${folder} is not here)`);
    const names = existsSync(folder) ? readdirSync(folder) : [];
    return names.filter((name) => name.endsWith(".csv")).map((name) => join(folder, name));
  });
}

function capacityFor(file: string): number | undefined {
  if (values.capacity !== "name") return values.capacity === undefined ? undefined : Number(values.capacity);
  const [, bytes] = /\.(\d+)\.csv$/.exec(file) ?? [];
  return bytes === undefined ? undefined : Math.floor(Number(bytes) * Number(values.room));
}

/** Sweeps over time: buffers live at one step must not overlap. */
function collisions({ buffers }: Problem, offsets: readonly number[]): number {
  let found = 0;
  const live = new Set<number>();
  const events = buffers.flatMap((b) => [
    { step: b.lifespan.start, id: b.id, start: true },
    { step: b.lifespan.end, id: b.id, start: false },
  ]);
  events.sort((a, b) => a.step - b.step || Number(a.start) - Number(b.start));
  for (const { id, start } of events) {
    if (!start) live.delete(id);
    else {
      const [from, to] = [offsets[id]!, offsets[id]! + buffers[id]!.bytes];
      for (const other of live) {
        if (offsets[other]! < to && from < offsets[other]! + buffers[other]!.bytes) found += 1;
      }
      live.add(id);
    }
  }
  return found;
}

console.log("instance | buffers | bound | height | ratio | proven | ms | nodes | by");
console.log("--- | --- | --- | --- | --- | --- | --- | --- | ---");
for (const file of positionals.length > 0 ? positionals : allFiles()) {
  const { problem } = parseCsv(readFileSync(file, "utf8"));
  const targetBytes = boundOf(problem).bytes;
  const capacityBytes = capacityFor(file);
  const before = process.cpuUsage().user;
  const userMs = (): number => (process.cpuUsage().user - before) / 1000;
  const result = searchPlacement(problem, {
    targetBytes,
    isOver: () => userMs() >= 1000 * Number(values.timeout),
    params,
    seed: Number(values.seed),
    ...(capacityBytes === undefined ? {} : { capacityBytes }),
  });
  const ms = userMs();
  const { height, offsets, proven, nodes, strategy } = result;
  const wrong = collisions(problem, offsets) + (height === heightOf(problem, offsets) ? 0 : 1);
  const name = file.replace(/^.*\//, "").replace(/\.csv$/, "");
  const ratio = (height / targetBytes).toFixed(5);
  const status = wrong > 0 ? `${wrong} WRONG` : proven;
  console.log(
    [name, problem.buffers.length, targetBytes, height, ratio, status, ms.toFixed(0), nodes, strategy].join(" | "),
  );
  if (wrong > 0) process.exitCode = 1;
}
