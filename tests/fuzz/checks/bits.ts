/** @file The same bits: run again, after a run on NaN, on other arguments, under other plans, on threads, donated. */
import type { CompileOptions, LossyOptions, Tree } from "../../../src/api/index.ts";
import { TidemarkError } from "../../../src/api/index.ts";
import { validate } from "../../../src/plan/validate.ts";
import type { Arguments } from "../program.ts";
import { bitsOf, compileFor, difference, errorText, isRefusal, type Session, textOf } from "./session.ts";

export type Bits = readonly Uint8Array[];

/** Bits of both lists of arguments. */
export type Expected = readonly [Bits, Bits];

/** Compiles and runs; what is wrong with plan or code is a finding, and gives null. */
function runVariant(session: Session, options: CompileOptions): readonly [Bits, Bits, Bits] | null {
  const { program, counts, found, begin } = session;
  begin(`compile ${textOf(options)}`);
  try {
    const compiled = compileFor(session, options);
    const info = compiled.program(...program.args(0));
    counts.plans++;
    const { memory } = options;
    if (typeof memory === "number" && info.arenaBytes > memory) {
      found("budget", `${textOf(options)} gets an arena of ${info.arenaBytes} bytes`);
    }
    if (info.arenaBytes < info.lowerBoundBytes) found("bound", `${info.arenaBytes} < ${info.lowerBoundBytes}`);
    const [broken] = validate(info.plan.program, info.plan);
    if (broken) found("validator", `${textOf(options)}: ${broken.rule}: ${broken.message}`);
    begin(`run ${textOf(options)}`);
    const first = bitsOf(compiled(...program.args(0)));
    compiled(...program.args(0, true));
    const other = bitsOf(compiled(...program.args(1)));
    const again = bitsOf(compiled(...program.args(0)));
    counts.runs += 4;
    return [first, other, again];
  } catch (error) {
    if (isRefusal(error)) {
      counts.refusals++;
      found("refused", `${textOf(options)}: ${error.message.split("\n")[0]}`);
    } else if (error instanceof TidemarkError && error.code === "InvalidPlan") {
      found("validator", `${textOf(options)}: ${error.message}`);
    } else {
      found("threw", `${textOf(options)}: ${errorText(error)}`);
    }
    return null;
  }
}

/** What all other plans must give. */
export function expectedBits(session: Session): Expected | null {
  const made = runVariant(session, {});
  if (!made) return null;
  const changed = difference(made[0], made[2]);
  if (changed) session.found("rerun", changed);
  return [made[0], made[1]];
}

export function checkVariant(session: Session, expected: Expected, options: CompileOptions): void {
  const made = runVariant(session, options);
  if (!made) return;
  const changed = difference(expected[0], made[0]) ?? difference(expected[1], made[1]);
  if (changed) session.found("bits", `${textOf(options)}: ${changed}`);
  const again = difference(made[0], made[2]);
  if (again) session.found("rerun", `${textOf(options)}: ${again}`);
}

/** Residuals that are rounded: the same bits on threads, recomputed and in a second run. */
export function checkRounded(session: Session, lossy: LossyOptions): void {
  const made = runVariant(session, { lossy });
  if (!made) return;
  for (const more of [{ threads: 2 }, { strategy: "recompute-all" }] as const) {
    const other = runVariant(session, { lossy, ...more });
    const changed = other && (difference(made[0], other[0]) ?? difference(made[1], other[1]));
    if (changed) session.found("bits", `${textOf({ lossy, ...more })}: ${changed}`);
  }
}

/** Three training steps that keep their state in the arena, beside three that do not. */
export function checkDonation(session: Session, options: CompileOptions): void {
  const { program, counts, found, begin } = session;
  begin(`donation ${textOf(options)}`);
  try {
    const [kept, plain] = [compileFor(session, { ...options, donate: [0] }), compileFor(session)];
    const [donated, given] = [program.args(0), program.args(0)];
    const before = bitsOf(given as unknown as Tree);
    let [a, b]: readonly [Tree, Tree] = [donated[0], given[0]];
    for (let i = 0; i < 3; i++) {
      const [, ...rest] = program.args(i) as unknown as [Tree, ...Tree[]];
      const [next, same] = [kept, plain].map((step, k) => {
        const made = step(...([k === 0 ? a : b, ...rest] as unknown as Arguments));
        return made as unknown as readonly [Tree, Tree];
      }) as [readonly [Tree, Tree], readonly [Tree, Tree]];
      const changed = difference(bitsOf(next as unknown as Tree), bitsOf(same as unknown as Tree));
      if (changed) found("donation", `${textOf(options)}, step ${i}: ${changed}`);
      [a, b] = [next[0], same[0]];
      counts.runs += 2;
    }
    counts.plans += 2;
    const changed = difference(before, bitsOf(given as unknown as Tree));
    if (changed) found("inputs", `an argument was changed: ${changed}`);
  } catch (error) {
    if (isRefusal(error)) found("refused", `donated ${textOf(options)}: ${error.message.split("\n")[0]}`);
    else found("threw", `donated ${textOf(options)}: ${errorText(error)}`);
  }
}
