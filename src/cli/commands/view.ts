/** @file `tidemark view`: a plan as a page, from a server on this machine or as one file. */
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { ProgramPlans } from "../../compiler/assemble.ts";
import { storeAll } from "../../plan/recompute/strategies.ts";
import type { StrategyName } from "../../plan/recompute/strategy.ts";
import { programAccount } from "../../tape/account-program.ts";
import type { Allowed } from "../../view/answers.ts";
import type { HeldAccount, ViewCurve, ViewData, ViewEntry } from "../../view/data.ts";
import { curveWithEntries, entryName, entryOf, livePlans, storedAnd } from "../../view/plans.ts";
import { entriesOfFile, FILE_KINDS, isViewFile } from "../../view/read-file.ts";
import { linesText } from "../../view/source-lines.ts";
import type { NamedPlans } from "../../view/stories.ts";
import { DRAWN_STRATEGIES } from "../../view/strategy-curves.ts";
import { type Arguments, type Command, type Io, integerOption } from "../command.ts";
import { readBytes, writeText } from "../files.ts";
import { loadProgram } from "../load.ts";
import { openInBrowser } from "../open.ts";
import { pageOf } from "../page.ts";
import { PLAN_OPTIONS, planLoaded, planSettings } from "../plan-figures.ts";
import { withAutocast } from "../products-option.ts";
import { PROGRESS_OPTION } from "../progress.ts";
import { strategiesOption } from "../strategies-option.ts";
import { serveView } from "../view-server.ts";
import { plansInThread } from "../view-thread.ts";

/** Snapshots of long runs are large. */
const LARGEST_VIEWED = 256 * 2 ** 20;

interface Source {
  readonly title: string;
  readonly entries: readonly ViewEntry[];
  readonly curve: ViewCurve | null;
  /** The plans of the entries, by the names under which their explanations are requested. */
  readonly named: NamedPlans;
  /** Of a program: all of its plans. */
  readonly plans: ProgramPlans | null;
  /** What plans of other budgets may do beside recomputing. */
  readonly allowed?: Allowed;
  /** Of a program with a backward pass. */
  readonly held?: HeldAccount;
}

/**
 * Resolves an argument: a file of some kind, or a program.
 * @param first number of its first entry
 */
async function sourceOf(word: string, first: number, args: Arguments, io: Io): Promise<Source> {
  if (isViewFile(word)) {
    const entries = entriesOfFile(basename(word), readBytes(word, FILE_KINDS.join(", "), LARGEST_VIEWED));
    return { title: entries[0]?.picture.name ?? word, entries, curve: null, named: new Map(), plans: null };
  }
  const loaded = withAutocast(await loadProgram(word), args);
  const settings = await planSettings(args, io, loaded);
  const { plans, planned, traced, refusal } = planLoaded(loaded, settings);
  if (refusal) throw refusal;
  const { memory } = settings;
  const asked = memory.budgetBytes ?? (memory.least ? planned.plan.height : null);
  const label = asked === null && planned.strategy === storeAll.name ? "as compiled" : `as asked (${planned.strategy})`;
  const { plan, predictedMs } = planned;
  const name = entryName(first);
  const entry = entryOf(plan, {
    label,
    predictedMs,
    budgetBytes: asked,
    asks: name,
    ...storedAnd(plans, planned),
  });
  const account = programAccount(traced, plan);
  const held = account.overloadBytes > 0 && account.passes.length > 0 ? { held: account } : {};
  const source = {
    title: loaded.name,
    entries: [entry],
    curve: null,
    named: new Map([[name, plan]]),
    plans,
    allowed: memory,
    ...held,
  };
  if (!args.has("html")) return source;
  const { curve, entries, named } = curveWithEntries(plans, pointsOf(args), first + 1, {
    strategies: drawnStrategies(args),
    allowed: memory,
  });
  return { ...source, entries: [entry, ...entries], curve, named: new Map([...source.named, ...named]) };
}

const pointsOf = (args: Arguments): number => integerOption(args, "points", 8, { least: 2 });

/** The strategies drawn beside `auto`. */
const drawnStrategies = (args: Arguments): readonly StrategyName[] =>
  args.value("strategies") === "none" ? [] : strategiesOption(args, DRAWN_STRATEGIES);

/** The plans that the page has already, and what others may do. */
type Answered = Pick<Source, "named" | "allowed">;

/** Answers requests of the page from a thread; from this thread if unbuilt sources run, which a worker cannot load. */
function answersOf(program: string, plans: ProgramPlans, { named, allowed }: Answered, args: Arguments) {
  const [points, strategies] = [pointsOf(args), drawnStrategies(args)];
  if (import.meta.url.endsWith(".ts")) {
    return { plans: livePlans(plans, points, named, { strategies, allowed }), close: () => undefined };
  }
  const options = Object.fromEntries(
    Object.keys(PLAN_OPTIONS).flatMap((name) => (args.has(name) ? [[name, args.value(name) ?? true] as const] : [])),
  );
  return plansInThread({ program, options, points, strategies }, named);
}

/** Beside a recorded snapshot: the same lifetimes placed here. */
function placedEntry({ entries }: Source): number | null {
  const [first, second] = entries;
  return first?.picture.strategy === "recorded" && second?.picture.strategy === "placed" ? 1 : null;
}

async function run(args: Arguments, io: Io): Promise<void> {
  const [word, otherWord] = args.positionals as [string, string?];
  const port = integerOption(args, "port", 0, { least: 0 });
  const source = await sourceOf(word, 0, args, io);
  const other = otherWord === undefined ? null : await sourceOf(otherWord, source.entries.length, args, io);
  const named = new Map([...source.named, ...(other?.named ?? [])]);
  const file = args.value("html");
  const live = source.plans && file === undefined ? answersOf(word, source.plans, { ...source, named }, args) : null;
  const data: ViewData = {
    version: 1,
    title: other ? `${source.title} and ${other.title}` : source.title,
    entries: [...source.entries, ...(other?.entries ?? [])],
    first: 0,
    second: other ? source.entries.length : placedEntry(source),
    curve: source.curve,
    live: live !== null,
    ...(source.held && !other ? { held: source.held } : {}),
  };
  const [recorded, compared] = [source.entries[0]?.picture, other?.entries[0]?.picture];
  if (recorded?.source === "snapshot" && compared?.source === "snapshot") io.err(linesText(recorded, compared));
  const page = pageOf(data, live ? new Map() : named);
  if (file !== undefined) {
    writeText(file, page);
    if (args.has("open")) return openInBrowser(pathToFileURL(resolve(file)).href, io);
    return io.err(`${file}: open it in a browser\n`);
  }
  const server = await serveView(page, live?.plans ?? null, port);
  io.out(`${server.url}\n`);
  if (args.has("open")) await openInBrowser(server.url, io);
  io.err("Ctrl-C ends it\n");
  process.once("SIGINT", server.close);
  process.once("SIGTERM", server.close);
  await server.closed;
  live?.close();
}

export const view: Command = {
  name: "view",
  positionals: ["PROGRAM|FILE", "[OTHER]"],
  summary: "show a plan in a browser: arena map, memory over time, trade-off, program, explanations",
  details:
    "FILE is a plan (.json, see `plan --plan-json`), a memory snapshot of PyTorch (.pickle, .pickle.gz) or placed buffers (.csv).\n" +
    "OTHER is compared with it. Serves on this machine and prints the address, or writes one file with --html.",
  options: {
    html: { value: "FILE", help: "write one self-contained file that opens from disk" },
    open: { help: "open it in a browser; not where CI is set" },
    port: { value: "N", help: "port of the server; default: any free port" },
    points: { value: "N", help: "number of budgets on the curve, default: 8; with --html, of plans in the file" },
    strategies: { value: "A,B,…", help: "strategies drawn beside auto; default: all but optimal; none: auto alone" },
    ...PLAN_OPTIONS,
    ...PROGRESS_OPTION,
  },
  run,
};
