/** @file `tidemark pack`: places the buffers of a file, in MiniMalloc's format, at offsets without overlap. */
import { grouped, TidemarkError } from "../../base/errors.ts";
import { boundOf } from "../../plan/bound.ts";
import { parseCsv, printCsv } from "../../plan/csv.ts";
import { searchPlacement } from "../../plan/place/search.ts";
import { type Command, integerOption, sizeOf, writeJson } from "../command.ts";
import { readText, writeText } from "../files.ts";

export const pack: Command = {
  name: "pack",
  positionals: ["FILE.csv"],
  summary: "place the buffers of a file (id,lower,upper,size) in as little memory as possible",
  details:
    "Lifespans are half-open. With a capacity, the search stops at the first placement that fits; without one, it returns\n" +
    "the lowest placement found before the deadline. Exit code 1 if the buffers do not fit the capacity.",
  options: {
    capacity: { value: "SIZE", help: "maximum height of the placement" },
    output: { value: "FILE", help: "write the buffers with their offsets" },
    timeout: { value: "S", help: "deadline in seconds, default: 10; the search ends early when the optimum is proved" },
    json: { help: "print one line of JSON" },
  },
  async run(args, io) {
    const file = args.positionals[0] as string;
    const capacity = sizeOf(args, "capacity");
    const { problem, names } = parseCsv(readText(file, ".csv"), capacity ?? Number.POSITIVE_INFINITY);
    const started = performance.now();
    const lowerBoundBytes = boundOf(problem).bytes;
    const { offsets, height, strategy, ...limits } = searchPlacement(problem, {
      targetBytes: lowerBoundBytes,
      timeoutMs: 1000 * integerOption(args, "timeout", 10, { least: 0 }),
      ...(capacity === null ? {} : { capacityBytes: capacity }),
    });
    const ms = performance.now() - started;
    const feasible = capacity === null || height <= capacity;
    const output = args.value("output");
    if (output !== undefined && feasible) writeText(output, printCsv(problem, offsets, names));
    // either no placement is lower, or none fits the capacity
    const proven = limits.proven || (capacity !== null && limits.boundBytes > capacity);
    const buffers = problem.buffers.length;
    if (!args.has("json")) {
      const ratio = (height / Math.max(1, lowerBoundBytes)).toFixed(3);
      io.out(
        `${grouped(buffers)} buffers in ${grouped(height)} bytes, ${ratio} × bound, by ${strategy}, ${ms.toFixed(0)} ms\n`,
      );
    } else writeJson(io, { buffers, capacity, lowerBoundBytes, heightBytes: height, feasible, proven, ms });
    if (feasible) return;
    const summary = `the buffers were placed in ${grouped(height)} bytes, the capacity is ${grouped(capacity as number)}`;
    const help = proven
      ? `no placement is below ${grouped(limits.boundBytes)} bytes`
      : `raise it to ${grouped(height)}`;
    throw new TidemarkError("PlanInfeasible", summary, { help });
  },
};
