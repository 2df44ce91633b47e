/** @file Weights with 16 bits of programs that are computed in f32 here: one error that names them. */
import { fail } from "../../trace/arguments.ts";

interface NamedWeight {
  readonly name: string;
  readonly type: string;
}

const NAMED = 5;

/** Refuses weights unless there are none; the caller selects those that have no type here. */
export function refuseHalves(half: readonly NamedWeight[]): void {
  if (half.length === 0) return;
  const shown = half.slice(0, NAMED).map(({ name, type }) => `${name} (${type})`);
  const more = half.length > NAMED ? ` and ${half.length - NAMED} more` : "";
  fail(
    "DtypeMismatch",
    `weights of 16 bits, which this computes in f32: ${shown.join(", ")}${more}`,
    'give { floats: "f32" } to agree',
  );
}
