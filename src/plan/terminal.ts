/**
 * @file Colour in the terminal, for pictures of memory: the page's colours, approximated in xterm's 256. The letters
 * stay, so nothing is lost without colour.
 */
import type { Paint } from "./memory-map.ts";
import type { BufferKind } from "./problem.ts";

/** Of xterm's 256: [text, ground]. */
const COLOURS: Readonly<Record<BufferKind, readonly [number, number]>> = {
  persistent: [231, 25],
  input: [16, 74],
  result: [231, 166],
  activation: [16, 178],
  gradient: [231, 36],
  update: [16, 175],
  scratch: [231, 60],
};

const ESC = "\u001b";

/**
 * `memoryChart(plan, { paint: terminalPaint })`.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { memoryChart, terminalPaint } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(memoryChart(plan, { paint: terminalPaint }).includes("\x1b[")); // → true
 */
export const terminalPaint: Paint = (text, kind) => {
  const [front, ground] = COLOURS[kind];
  return `${ESC}[38;5;${front};48;5;${ground}m${text}${ESC}[0m`;
};

/**
 * Whether to use colours: on a terminal, unless NO_COLOR or FORCE_COLOR says otherwise.
 *
 * @example
 * import { wantsColour } from "tidemark/plan";
 *
 * console.log(wantsColour(true, {}), wantsColour(true, { NO_COLOR: "1" })); // → true false
 */
export function wantsColour(isTerminal: boolean, env: Readonly<Record<string, string | undefined>>): boolean {
  if (env.NO_COLOR !== undefined && env.NO_COLOR !== "") return false;
  if (env.FORCE_COLOR !== undefined) return env.FORCE_COLOR !== "0";
  return isTerminal && env.TERM !== "dumb";
}
