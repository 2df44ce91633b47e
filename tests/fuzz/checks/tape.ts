/** @file The same bits on a tape: operations by themselves, in compiled runs, with elements read on the way, and by the tape's own gradients. */
import type { Tensor, Tree } from "../../../src/api/index.ts";
import { type TapeOptions, tape } from "../../../src/tape/index.ts";
import { Random } from "../../support/random.ts";
import { leavesOf } from "../program.ts";
import type { Expected } from "./bits.ts";
import { bitsOf, difference, errorText, type Session, textOf } from "./session.ts";

/** Runs come again the second time. */
const WAYS: readonly TapeOptions[] = [{ compileRuns: false }, {}, {}];

/** Of a program on WebAssembly, which is what tapes run on. */
export function checkTape(session: Session, expected: Expected): void {
  const { program, counts, found, begin } = session;
  const random = new Random(program.recipe.seed);
  const compare = (what: string, run: () => Tree): void => {
    begin(what);
    try {
      const changed = difference(expected[0], bitsOf(run()));
      if (changed) found("tape", `${what}: ${changed}`);
      counts.runs += 1;
    } catch (error) {
      found("threw", `${what}: ${errorText(error)}`);
    }
  };
  const read = (x: Tensor): void => {
    if (random.chance(0.3)) x.data();
  };
  for (const options of WAYS) {
    compare(`tape ${textOf(options)}`, () => tape(() => program.fn(...program.args(0)), options));
    const { taped } = program;
    if (taped)
      compare(`gradient of a tape ${textOf(options)}`, () => tape((t) => taped(t, read, program.args(0)), options));
  }
  compare("read on a tape", () =>
    tape(() => {
      const made = program.fn(...program.args(0));
      for (const leaf of leavesOf(made)) read(leaf);
      return made;
    }),
  );
}
