/**
 * @file Values thrown by user code, which need not be well-formed errors: `throw null`, an error without a stack, one
 * whose message cannot be read.
 */
import { TidemarkError } from "../base/errors.ts";
import { InternalError } from "../base/invariant.ts";
import { parseFrame, thrownAt } from "../trace/source-location.ts";

/** Length limit of foreign text. */
const LONGEST = 2000;

/** The text of any thrown value. */
export function thrownText(thrown: unknown): string {
  try {
    const text = thrown instanceof Error ? thrown.message || thrown.name : `it threw ${String(thrown)}`;
    return typeof text === "string" ? text.slice(0, LONGEST) : `it threw an error whose message is ${typeof text}`;
  } catch {
    return "it threw something that cannot be shown";
  }
}

function placeOf(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) return "a module, which threw no error";
  try {
    // our own errors always have one
    return thrownAt(thrown) ?? (hasFrames(thrown) ? undefined : "a module, whose error has no stack");
  } catch {
    return "a module, whose error cannot be read";
  }
}

/** Whether its stack has frames outside Node. */
function hasFrames({ stack }: Error): boolean {
  if (typeof stack !== "string") return false;
  const files = stack.split("\n").flatMap((line) => parseFrame(line)?.file ?? []);
  return files.some((file) => !file.startsWith("node:"));
}

/** `TypeError: message`, whatever it is. */
function summaryOf(thrown: unknown): string {
  const text = thrownText(thrown);
  try {
    return thrown instanceof Error && thrown.message ? `${thrown.name}: ${text}` : text;
  } catch {
    return text;
  }
}

/** An error thrown by a module is the user's: reported in one line with its location. */
export function asUserError(thrown: unknown): unknown {
  if (thrown instanceof TidemarkError || thrown instanceof InternalError) return thrown;
  const where = placeOf(thrown);
  if (where === undefined) return thrown;
  const help = "it is thrown by the module, not by tidemark: run the module with node to see the whole stack";
  return new TidemarkError("UnknownProgram", summaryOf(thrown), { where, help });
}
