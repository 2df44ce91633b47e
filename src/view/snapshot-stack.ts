/**
 * @file What the stack of a recorded allocation says: the user's line, a name, and the part of a training step that it belongs to. PyTorch's
 * backward pass runs in a thread of its own, whose allocations have no Python frames; recomputation by a checkpoint has
 * those of the forward pass above its own.
 */
import type { PickleValue } from "./pickle.ts";

/** `setup`: outside of modules, before or between steps. */
export type StackPhase = "setup" | "forward" | "recompute" | "backward" | "update";

export interface Stack {
  /** The innermost Python line outside PyTorch, otherwise the innermost line; null without a stack. */
  readonly where: string | null;
  /** `forward:21 layer_norm`: function and line of the user, function of PyTorch. */
  readonly name: string | null;
  readonly phase: StackPhase;
  /** Whether there are frames of PyTorch. */
  readonly isLibrary: boolean;
}

interface Frame {
  readonly path: string;
  readonly line: number;
  readonly fn: string;
  readonly isOwn: boolean;
}

const EMPTY: Stack = { where: null, name: null, phase: "backward", isLibrary: false };

/** Functions whose names say nothing about what they compute. */
const GENERIC: ReadonlySet<string> = new Set(
  ["forward", "<lambda>", "wrapper", "_fn", "apply", "_apply", "_call_impl", "_wrapped_call_impl", "<module>"].concat([
    "maybe_fallback",
    "_use_grad",
    "step",
  ]),
);

const RECOMPUTING: ReadonlySet<string> = new Set(["backward", "unpack_hook", "recompute_fn"]);

const get = (data: PickleValue | undefined, key: string): PickleValue | undefined =>
  data instanceof Map ? data.get(key) : undefined;

function frameOf(frame: PickleValue): Frame {
  const [file, line, fn] = [get(frame, "filename"), get(frame, "line"), get(frame, "name")];
  const path = typeof file === "string" ? file : "?";
  return {
    path,
    line: typeof line === "number" && line >= 0 ? Math.floor(line) : 0,
    fn: typeof fn === "string" ? fn : "?",
    isOwn: /(^|[\\/])torch[\\/]|\?\?|\.cpp|\.so/.test(path),
  };
}

/** `torch/nn/modules/linear.py` → `linear`. */
const stem = (path: string): string => path.replace(/^.*[\\/]/, "").replace(/\.py$/, "");

function phaseOf(frames: readonly Frame[]): StackPhase {
  if (frames.some(({ path }) => /(^|[\\/])torch[\\/]optim[\\/]/.test(path))) return "update";
  const replay = frames.findIndex(({ path, fn }) => stem(path) === "checkpoint" && RECOMPUTING.has(fn));
  const engine = frames.findIndex(({ fn }) => fn === "_engine_run_backward" || fn === "_make_grads");
  if (replay > 0 && (engine < 0 || engine > replay)) return "recompute";
  if (engine >= 0 || frames.every(({ path }) => !path.endsWith(".py"))) return "backward";
  const isInside = frames.some(({ fn, isOwn, path }) => {
    return fn === "_call_impl" || fn === "forward" || (isOwn && stem(path) === "functional");
  });
  return isInside ? "forward" : "setup";
}

function nameOf(frames: readonly Frame[]): string | null {
  const user = frames.find(({ isOwn }) => !isOwn);
  const library = frames.slice(0, user ? frames.indexOf(user) : frames.length);
  const telling = library.find(({ fn }) => !GENERIC.has(fn) && !fn.startsWith("_"));
  const what = telling?.fn ?? (library[0] ? stem(library[0].path) : "");
  if (!user) return what === "" ? null : what;
  return `${user.fn.replaceAll(/[<>]/g, "")}:${user.line}${what === "" ? "" : ` ${what}`}`;
}

/** Reads stacks; one list of frames can be referenced many times. */
export class Stacks {
  readonly #known = new Map<PickleValue, Stack>();

  of(frames: PickleValue | undefined): Stack {
    if (!Array.isArray(frames) || frames.length === 0) return EMPTY;
    const before = this.#known.get(frames);
    if (before) return before;
    const list = frames.slice(0, 512).map(frameOf);
    const shown = list.find(({ isOwn }) => !isOwn) ?? list[0];
    const stack: Stack = {
      where: shown ? `${shown.path}:${shown.line} in ${shown.fn}` : null,
      name: nameOf(list),
      phase: phaseOf(list),
      isLibrary: list.some(({ isOwn }) => isOwn),
    };
    this.#known.set(frames, stack);
    return stack;
  }
}
