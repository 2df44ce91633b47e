/**
 * @file Programs that start on WebAssembly, which is ready in tenths of a second, and go on in native code, between two calls, once the
 * C compiler is done with it (decision 50):
 *
 *   trace ─┬─ native   plan, generate ── compile ─────────────────────╮
 *          ╰─ wasm     plan, generate ── ready ── call ── call ── … ──┴── call ── call
 *                                          ╰─ the promise
 *
 * What is ready first is used: native code that is cached needs no other start. State goes along as between two functions: its elements
 * are moved out of the arena of the one, and written into that of the other by the next call. While both are there, so are both arenas;
 * a budget is for one, and rules this out.
 */
import { withLocation } from "../base/errors.ts";
import { type ChosenTarget, DEFAULT_TARGET } from "../runtime/choose-target.ts";
import { describe, fail } from "../trace/arguments.ts";
import { type Entry, type Maker, makerOf } from "./compile.ts";
import { CompileWatch } from "./compile-progress.ts";
import { type AbortSignalLike, StopSignal } from "./event-loop.ts";
import { entryFor, loadSent, type Making, planElsewhere } from "./made-elsewhere.ts";
import type { CompileOptions } from "./request.ts";
import type { TracedProgram } from "./traced-program.ts";

/** Which programs may start on WebAssembly: those with the same bits there as in native code, or all. */
export type WasmStart = "same-bits" | "any-bits";

const STARTS: readonly WasmStart[] = ["same-bits", "any-bits"];

/** Options that a start on WebAssembly cannot be had with, and why. */
const EXCLUDED: readonly (readonly [keyof CompileOptions, string])[] = [
  ["memory", "a budget is for one arena, and while the program moves there are two"],
  ["maxSlowdown", "it asks for a small arena, and while the program moves there are two"],
  ["shapes", "programs of a family are compiled together"],
  ["checkNaN", "it runs operation by operation"],
];

/** Throws unless the option is one, and the others allow it. @internal */
export function requireWasmStart(caller: string, start: WasmStart | undefined, options: CompileOptions): void {
  if (start === undefined) return;
  if (!STARTS.includes(start)) {
    const help =
      'give "same-bits", or "any-bits" where the last bits of products may depend on how fast the compiler is';
    fail("InvalidArgument", `${caller}: startOnWasm is ${describe(start)}`, help);
  }
  if (options.target !== "auto") {
    const help = 'give target: "auto", or leave startOnWasm out';
    fail("InvalidArgument", `${caller}: startOnWasm is for the target auto`, help);
  }
  for (const [name, why] of EXCLUDED) {
    if (options[name] === undefined || options[name] === false) continue;
    fail("InvalidArgument", `${caller}: startOnWasm and ${name}: ${why}`, `leave one of the two out`);
  }
}

interface Start {
  readonly maker: Maker;
  readonly source: TracedProgram;
  readonly watch: CompileWatch;
  readonly start: WasmStart;
  /** Ends what is still being made. */
  readonly stop: StopSignal;
}

/** A signal that ends with the user's, and by itself. @internal */
export function endingWith(signal: AbortSignalLike | undefined): StopSignal {
  const stop = new StopSignal();
  const end = (): void => stop.stop(signal?.reason);
  if (signal?.aborted) end();
  else signal?.addEventListener("abort", end);
  return stop;
}

/** Who makes the program for WebAssembly; null where `auto` does not wait for a compiler. */
function earlyMaker({ fn, request, kept }: Maker): Maker | null {
  const { instead, target } = kept.target;
  return instead && target.loadCode ? makerOf(fn, { ...request, target: DEFAULT_TARGET, products: undefined }) : null;
}

/** The program on WebAssembly; null where it may not be used, or where this thread would have to make it. */
async function earlyEntry({ start, ...making }: Making & { readonly start: WasmStart }): Promise<Entry | null> {
  const chosen = making.maker.kept.target;
  try {
    const sent = await planElsewhere(making, chosen);
    if (typeof sent === "string" || !sent.code || (start === "same-bits" && sent.hasFloatProducts)) return null;
    return noted(await loadSent(making, chosen, sent), "wasm until native code is compiled", chosen);
  } catch {
    // what is wrong with the program, the other one says
    return null;
  }
}

/** The same program with a note about its target, before that of the target itself. */
const noted = (entry: Entry, note: string, { note: more }: ChosenTarget): Entry => ({
  ...entry,
  figures: { ...entry.figures, targetNote: more === null ? note : `${note}; ${more}` },
});

/** The maker that has the program first; calls go on in native code as soon as that is there. @internal */
export async function startedOnWasm({ maker, source, watch, start, stop }: Start): Promise<Maker> {
  const { key } = source.flat;
  maker.kept.settle(source);
  const early = earlyMaker(maker);
  const own = entryFor({ maker, source, watch }).then((entry) => {
    maker.kept.add(key, entry);
    return maker;
  });
  const ending = endingWith(stop);
  const silent = new CompileWatch({ onProgress: undefined, signal: ending, name: "", where: watch.where });
  const quick = async (from: Maker): Promise<Maker> => {
    const entry = await earlyEntry({ maker: from, source, watch: silent, start });
    if (!entry) return own;
    from.kept.add(key, entry);
    return from;
  };
  try {
    const first = await (early ? Promise.race([own, quick(early)]) : own);
    if (first !== maker) moveLater({ maker, early: first, watch, stop, key }, own).catch(() => undefined);
    else early?.kept.dispose();
    watch.done();
    return first;
  } catch (error) {
    for (const { kept } of early ? [maker, early] : [maker]) kept.dispose();
    throw withLocation(error, watch.where);
  } finally {
    ending.stop();
  }
}

interface Move extends Pick<Start, "maker" | "watch" | "stop"> {
  readonly early: Maker;
  readonly key: string;
}

/** Goes on with the program of the first maker, once it is there. Whatever goes wrong, WebAssembly stays. */
async function moveLater({ maker, early, watch, stop, key }: Move, own: Promise<Maker>): Promise<void> {
  early.kept.onDispose(() => stop.stop());
  const problem = await own.then(
    () => null,
    (error: unknown) => (error instanceof Error ? error.message : String(error)).split("\n", 1)[0],
  );
  const { calls } = early.kept.counts;
  const [from, to] = [early, maker].map(({ kept }) => kept.target);
  // `auto` may have come to WebAssembly as well, and then says why
  const isMoved = problem === null && from?.target.description.key !== to?.target.description.key;
  if (isMoved) early.kept.takeOver(maker.kept);
  else maker.kept.dispose();
  const note = isMoved ? `wasm for the first ${calls} calls` : `wasm to the end: ${problem ?? to?.note}`;
  const entry = early.kept.change(key, (now) => noted(now, note, early.kept.target));
  // not disposed of
  if (entry) watch.moved(entry.figures, note);
}
