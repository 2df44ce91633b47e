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

/** `memoryChart(plan, { paint: terminalPaint })`. */
export const terminalPaint: Paint = (text, kind) => {
  const [front, ground] = COLOURS[kind];
  return `${ESC}[38;5;${front};48;5;${ground}m${text}${ESC}[0m`;
};

/** Whether to use colours: on a terminal, unless NO_COLOR or FORCE_COLOR says otherwise. */
export function wantsColour(isTerminal: boolean, env: Readonly<Record<string, string | undefined>>): boolean {
  if (env.NO_COLOR !== undefined && env.NO_COLOR !== "") return false;
  if (env.FORCE_COLOR !== undefined) return env.FORCE_COLOR !== "0";
  return isTerminal && env.TERM !== "dumb";
}
