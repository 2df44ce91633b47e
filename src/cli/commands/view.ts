/** @file `tidemark view`: a plan as a page, from a server on this machine or as one file. */
import { basename } from "node:path";
import type { ViewCurve, ViewData, ViewEntry } from "../../view/data.ts";
import { askingEntry, curveWithEntries, entryOf, FIRST, type LivePlans, livePlans } from "../../view/plans.ts";
import { entriesOfFile, FILE_KINDS, isViewFile } from "../../view/read-file.ts";
import { type Arguments, type Command, type Io, wholeNumber } from "../command.ts";
import { readBytes, writeText } from "../files.ts";
import { loadProgram } from "../load.ts";
import { pageOf } from "../page.ts";
import { PLAN_OPTIONS, planLoaded, planSettings } from "../plan-figures.ts";
import { serveView } from "../view-server.ts";

interface Source {
  readonly title: string;
  readonly entries: readonly ViewEntry[];
  readonly curve: ViewCurve | null;
  readonly live: LivePlans | null;
}

/** What a word on the command line names: a file of some kind, or a program. */
async function sourceOf(word: string, args: Arguments, io: Io): Promise<Source> {
  if (isViewFile(word)) {
    const entries = entriesOfFile(basename(word), readBytes(word, FILE_KINDS.join(", ")));
    return { title: entries[0]?.picture.name ?? word, entries, curve: null, live: null };
  }
  const loaded = await loadProgram(word);
  const settings = await planSettings(args, io);
  const { plans, planned, refusal } = planLoaded(loaded, settings);
  if (refusal) throw refusal;
  const { memory } = settings;
  const asked = memory.budgetBytes ?? (memory.least ? planned.plan.height : null);
  const label = asked === null && planned.strategy === "store-all" ? "as compiled" : `as asked (${planned.strategy})`;
  const points = wholeNumber(args, "points", 8, 2);
  const { plan, predictedMs } = planned;
  if (!args.has("html")) {
    const first = askingEntry(label, plan, predictedMs, asked, FIRST);
    return { title: loaded.name, entries: [first], curve: null, live: livePlans(plans, points, plan) };
  }
  const entry = entryOf(label, plan, predictedMs, asked);
  const { curve, entries } = curveWithEntries(plans, points, 1);
  return { title: loaded.name, entries: [entry, ...entries], curve, live: null };
}

async function run(args: Arguments, io: Io): Promise<void> {
  const [word, otherWord] = args.positionals as [string, string?];
  const port = wholeNumber(args, "port", 0, 0);
  const source = await sourceOf(word, args, io);
  const other = otherWord === undefined ? null : await sourceOf(otherWord, args, io);
  const data: ViewData = {
    version: 1,
    title: other ? `${source.title} and ${other.title}` : source.title,
    entries: [...source.entries, ...(other?.entries ?? [])],
    first: 0,
    second: other ? source.entries.length : null,
    curve: source.curve,
    live: source.live !== null,
  };
  const page = pageOf(data);
  const file = args.value("html");
  if (file !== undefined) {
    writeText(file, page);
    io.err(`${file}: open it in a browser\n`);
    return;
  }
  const server = await serveView(page, source.live, port);
  io.out(`${server.url}\n`);
  io.err("Ctrl-C ends it\n");
  process.once("SIGINT", server.close);
  process.once("SIGTERM", server.close);
  await server.closed;
}

export const view: Command = {
  name: "view",
  positionals: ["PROGRAM|FILE", "[OTHER]"],
  summary: "look at a plan in a browser: arena map, memory over time, trade-off, program, reasons",
  details:
    "FILE is a plan (.json, see `plan --plan-json`), a memory snapshot of PyTorch (.pickle) or placed buffers (.csv).\n" +
    "OTHER is compared with it. Serves on this machine and prints the address, or writes one file with --html.",
  options: {
    html: { value: "FILE", help: "write one self-contained file that opens from disk" },
    port: { value: "N", help: "where to serve; any free port by default" },
    points: { value: "N", help: "budgets on the curve, 8 by default; with --html that many plans are in the file" },
    ...PLAN_OPTIONS,
  },
  run,
};
