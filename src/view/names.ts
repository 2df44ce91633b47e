/** @file Names of values in a page: which ones a query matches, and what is shown of a name where there is little room. */
import type { Picture } from "./picture.ts";

/** The rank of a value that does not match. */
export const MISS = 3;

/**
 * How well the values of a picture match a query; null if that is empty. Every word of the query must be in the name, which
 * has the parts of the program in it, or in the name of the operation. Names that begin with the query are first, then other
 * names, then operations.
 */
export function matchesOf({ values, steps }: Picture, query: string): ((value: number) => number) | null {
  const whole = query.trim().toLowerCase();
  if (whole === "") return null;
  const words = whole.split(/\s+/);
  return (v) => {
    const name = values[v]?.name.toLowerCase() ?? "";
    if (name.startsWith(whole)) return 0;
    if (words.every((word) => name.includes(word))) return 1;
    const operation = steps[values[v]?.written ?? -1]?.text.replace(/\(.*$/s, "").toLowerCase() ?? "";
    return words.every((word) => name.includes(word) || operation.includes(word)) ? 2 : MISS;
  };
}

/**
 * As much of a name as there is room for. The last parts say most: `d_block0.attention.qkv`, `d_attention.qkv`, `d_qkv`,
 * `d_q…`.
 */
export function fittingName(name: string, room: number): string {
  const mark = name.startsWith("d_") ? "d_" : "";
  let rest = name;
  for (let dot = name.indexOf("."); dot >= 0 && rest.length > room; dot = name.indexOf(".", dot + 1)) {
    rest = `${mark}${name.slice(dot + 1)}`;
  }
  return rest.length > room ? `${rest.slice(0, room - 1)}…` : rest;
}
