/** @file What a pool is asked for, checked: its range has to stay consistent whatever comes from outside. */
import { parseBytes } from "../base/bytes.ts";
import { grouped, TidemarkError } from "../base/errors.ts";
import { guess } from "../base/suggest.ts";
import type { PoolOptions } from "./pool.ts";

/** Beside the interface: the compiler checks that both have the same names. */
const OPTIONS: Readonly<Record<keyof PoolOptions, true>> = {
  name: true,
  limitBytes: true,
  reserve: true,
  move: true,
  history: true,
};
const NAMES = Object.keys(OPTIONS);

function refuse(summary: string, help: string): never {
  throw new TidemarkError("InvalidArgument", summary, { help });
}

/** Throws where there is an option that pools do not have. */
export function requireOptions(options: PoolOptions): void {
  const unknown = Object.keys(options).find((key) => !NAMES.includes(key));
  if (unknown === undefined) return;
  refuse(`Pool: there is no option ${unknown}`, `${guess(unknown, NAMES)}options are ${NAMES.join(", ")}`);
}

/** A limit in bytes; without one, infinity. */
export function limitOf(limit: string | number | undefined): number {
  return limit === undefined || limit === Number.POSITIVE_INFINITY ? Number.POSITIVE_INFINITY : parseBytes(limit);
}

export function badBytes(pool: string, bytes: unknown): never {
  return refuse(
    `${pool}: an allocation of ${String(bytes)} bytes`,
    `give a number from 0 to ${grouped(Number.MAX_SAFE_INTEGER)}`,
  );
}

export function notInUse(pool: string, handle: unknown): never {
  return refuse(
    `${pool}: block ${String(handle)} is not in use`,
    "give a handle that allocate() gave and that was not freed since",
  );
}

export function badHistory(pool: string, most: unknown, limit: number): never {
  return refuse(
    `${pool}: a history of ${String(most)} allocations`,
    `give a whole number up to ${grouped(limit)}, 0 for none`,
  );
}
