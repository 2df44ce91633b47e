/**
 * @file The user's source line, from the call stack: the innermost frame that is not inside the library. It goes onto
 * graph nodes and into errors. Understands the stacks of V8 (`at f (file:1:2)`) and of Firefox and Safari (`f@file:1:2`).
 *
 * The library's own directory is read off the stack once, when a location is first asked for, so it works from src/ and
 * dist/ and needs neither import.meta nor paths. In a bundle the library is the script that it was put into: code of the
 * user's in the same script has no locations, code that is loaded otherwise has.
 *
 * Every node of a trace has a line, and most of the time of tracing would go into the texts of stacks. V8 provides frames
 * as objects too: the user's frame is found among those, and its text alone is the key to what was found before. The
 * location itself always comes from the text of a whole stack, to which source maps and other hooks have been applied.
 */
import { InternalError } from "../base/invariant.ts";

interface Frame {
  readonly fn: string;
  readonly file: string;
  readonly line: string;
  readonly column: string;
}

/**
 * Frames to look at: few at first, as every frame costs time for every node of a trace; then enough to get out of the
 * deepest composite operations.
 */
const DEPTHS = [10, 24] as const;
/** Stacks remembered with what was found in them. Loops and repeated layers come from few lines. */
const MOST_KNOWN = 2048;

const V8 = /^\s*at (?:(?:async )?(.*?) \()?(.*?):(\d+):(\d+)\)?$/;
const GECKO = /^(.*?)@(.*?):(\d+):(\d+)$/;

/** One line of a stack in either format, or null. */
export function parseFrame(line: string): Frame | null {
  const found = V8.exec(line) ?? GECKO.exec(line);
  const [, fn, file, row, column] = found ?? [];
  if (file === undefined || row === undefined || column === undefined) return null;
  return { fn: fn ?? "", file: file.replace(/^file:\/\//, "").replace(/[?#].*$/, ""), line: row, column };
}

/** Programs and tests that live beside the library's code are its users. */
function isUsers(file: string, root: string): boolean {
  return file.includes(".test.") || file.startsWith(`${root}cli/programs/`);
}

/** The innermost frame outside `root`, as `model.ts:21:14 in decoder`. */
export function locate(stack: string, root: string): string | undefined {
  for (const line of stack.split("\n")) {
    const frame = parseFrame(line);
    if (!frame || frame.file.startsWith("node:")) continue;
    if (frame.file.startsWith(root) && !isUsers(frame.file, root)) continue;
    const name = frame.file.slice(frame.file.lastIndexOf("/") + 1);
    const fn = /^(?:Module\.|Object\.|new )?([A-Za-z_$][\w$]*)$/.exec(frame.fn)?.[1];
    const place = `${name}:${frame.line}:${frame.column}`;
    return fn && fn !== "anonymous" ? `${place} in ${fn}` : place;
  }
  return undefined;
}

/** Where an error was thrown, if that is not in the library. */
export function thrownAt(error: Error): string | undefined {
  const { root } = library();
  if (root === null || typeof error.stack !== "string") return undefined;
  for (const line of error.stack.split("\n")) {
    const file = parseFrame(line)?.file;
    // errors thrown inside Node belong to the caller's line
    if (file === undefined || file.startsWith("node:")) continue;
    return file.startsWith(root) ? undefined : locate(line, root);
  }
  return undefined;
}

/** The user's innermost line among the frames of an error's stack. */
export function lineOf(error: Error): string | undefined {
  const { root } = library();
  return root === null ? undefined : locate(error.stack ?? "", root);
}

/** Extensions of `Error` in V8 that other engines lack. */
interface V8Errors {
  stackTraceLimit?: number;
  captureStackTrace?(holder: object): void;
  prepareStackTrace?: ((error: unknown, frames: readonly V8Frame[]) => unknown) | undefined;
}

/** Its text is that of its line in a stack. */
interface V8Frame {
  getFileName(): string | null | undefined;
  /** The same for code made of text, which may name itself. */
  getScriptNameOrSourceURL(): string | null | undefined;
}

const errors = Error as unknown as V8Errors;

/** An error that holds the call stack and is never thrown. */
function errorNow(depth: number): InternalError {
  const before = errors.stackTraceLimit;
  errors.stackTraceLimit = depth;
  try {
    return new InternalError("stack");
  } finally {
    if (before !== undefined) errors.stackTraceLimit = before;
  }
}

/** The innermost of `depth` frames that passes the test; null if none does, or where frames cannot be had. */
function findFrame(depth: number, test: (frame: V8Frame) => boolean): V8Frame | null {
  const { stackTraceLimit, prepareStackTrace, captureStackTrace } = errors;
  if (!captureStackTrace || stackTraceLimit === undefined) return null;
  const holder: { stack?: V8Frame | string | null } = {};
  errors.stackTraceLimit = depth;
  errors.prepareStackTrace = (_, frames) => frames.find(test) ?? null;
  try {
    captureStackTrace(holder);
    // Firefox captures stacks as text, without asking `prepareStackTrace`
    return typeof holder.stack === "object" ? holder.stack : null;
  } finally {
    errors.stackTraceLimit = stackTraceLimit;
    errors.prepareStackTrace = prepareStackTrace;
  }
}

/** The call stack as text. */
const stackNow = (depth: number): string => errorNow(depth).stack ?? "";

/** The user's line of this moment, found when it is asked for: making the text of a stack is most of the work. */
export function laterLocation(): () => string | undefined {
  const error = errorNow(DEPTHS[1]);
  return () => lineOf(error);
}

/** This file among the sources, and what the build puts it into (scripts/build.mjs); both are one folder deep. */
const OWN_FILE = /^(.*\/)(?:trace\/source-location|shared\/tidemark-[a-z-]+)\.[cm]?[jt]s$/;

/**
 * The directory two levels up from this file, with its slash; the script itself when this file has been bundled into
 * another; null where stacks name no files.
 */
function libraryRoot(): string | null {
  const files = stackNow(DEPTHS[0])
    .split("\n")
    .flatMap((line) => parseFrame(line)?.file ?? []);
  for (const file of files) {
    const root = OWN_FILE.exec(file)?.[1];
    if (root) return root;
  }
  return files[0] ?? null;
}

interface Library {
  readonly root: string | null;
  /** Directory of the scripts as they run, which source maps may show under another name; null without frames. */
  readonly scripts: string | null;
}

let found: Library | null = null;

function library(): Library {
  if (found) return found;
  const scripts = findFrame(1, () => true)?.getFileName() ?? null;
  found = { root: libraryRoot(), scripts: scripts?.replace(OWN_FILE, "$1") ?? null };
  return found;
}

/** Whether scripts are the user's, by their names. */
const isOutside = new Map<string, boolean>();

function isUsersFrame(frame: V8Frame): boolean {
  const file = frame.getFileName() ?? frame.getScriptNameOrSourceURL();
  if (!file) return false;
  let outside = isOutside.get(file);
  if (outside === undefined) {
    const root = library().scripts ?? "";
    outside = !file.startsWith("node:") && (!file.startsWith(root) || isUsers(file, root));
    isOutside.set(file, outside);
  }
  return outside;
}

/** User's frame, or a whole stack where frames cannot be had → location. */
const known = new Map<string, string | undefined>();

/** The text of the user's frame; null if there is none among the frames looked at. */
function usersFrame(): string | null {
  for (const depth of DEPTHS) {
    const frame = findFrame(depth, isUsersFrame);
    if (frame) return String(frame);
  }
  return null;
}

/** Where the user called into the library just now. */
export function sourceLocation(): string | undefined {
  const { root, scripts } = library();
  if (root === null) return undefined;
  const key = scripts === null ? stackNow(DEPTHS[1]) : usersFrame();
  if (key === null) return undefined;
  if (!known.has(key)) {
    if (known.size >= MOST_KNOWN) known.clear();
    known.set(key, locate(scripts === null ? key : stackNow(DEPTHS[1]), root));
  }
  return known.get(key);
}
