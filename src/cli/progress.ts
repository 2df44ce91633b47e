/**
 * @file One line on stderr that says how far a command is, for everything that takes longer than a second:
 *
 *   planning: 14 plans, the smallest takes 3.2 MiB, 79 %, 4.1 s, about 1.1 s left
 *
 * On a terminal the line is written over itself and erased before other output and at the end. It is not there with `--json`, and
 * where stderr is no terminal; `--progress` asks for it there too, as lines of their own.
 */
import type { Arguments, Io, OptionSpec } from "./command.ts";

export const PROGRESS_OPTION = {
  progress: { help: "report progress on stderr also with --json, and where stderr is no terminal" },
} as const satisfies Record<string, OptionSpec>;

/** How far a command is. */
export interface Progress {
  /** What it does, with what it can count. */
  readonly doing: string;
  /** From 0 to 1, where that can be estimated. */
  readonly share?: number;
  /** Nothing is told until it is done: it is shown at once, on a terminal. */
  readonly blocks?: boolean;
}

/** Milliseconds: work that is done sooner shows nothing. */
const FIRST_MS = 1000;
/** Milliseconds between two texts, on a terminal and elsewhere. */
const [TERMINAL_MS, LINES_MS] = [100, 2000] as const;

/** Back to the start of the line, which is emptied. */
const ERASE = "\r\u001B[2K";

/** Shares below this say too little about the time that remains. */
const LEAST_SHARE = 0.05;

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

export function progressText({ doing, share }: Progress, elapsedMs: number): string {
  const percent = share === undefined ? [] : [`${Math.floor(100 * share)} %`];
  const isEnough = share !== undefined && share >= LEAST_SHARE && share < 1;
  const remains = isEnough ? [`about ${seconds((elapsedMs * (1 - share)) / share)} left`] : [];
  return [doing, ...percent, seconds(elapsedMs), ...remains].join(", ");
}

/** Streams that show progress, and a function that removes it; the same streams where none is to be shown. */
export function withProgress(io: Io, args: Arguments, now = () => performance.now()): { io: Io; end(): void } {
  const { terminal = false } = io;
  const isShown = args.has("progress") || (terminal && !args.has("json"));
  if (!isShown) return { io, end: () => undefined };
  const started = now();
  let [last, isThere] = [started, false];
  const end = (): void => {
    if (isThere) io.err(ERASE);
    isThere = false;
  };
  const progress = (told: Progress): void => {
    const at = now();
    const isEarly = at - started < FIRST_MS || at - last < (terminal ? TERMINAL_MS : LINES_MS);
    if (isEarly && !(told.blocks && terminal)) return;
    last = at;
    const text = progressText(told, at - started);
    io.err(terminal ? `${ERASE}${text}` : `${text}\n`);
    isThere = terminal;
  };
  const after = (write: (text: string) => void) => (text: string) => {
    end();
    write(text);
  };
  return { io: { ...io, out: after(io.out), err: after(io.err), progress }, end };
}
