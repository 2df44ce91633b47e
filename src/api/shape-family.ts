/**
 * @file The programs of one function for the extents that its named dimensions may have, planned together before the first run:
 *
 *   ├── state │ constants ──┼── T = 64 ──┤                       one arena, of the largest member's size
 *   ├── state │ constants ──┼── T = 128 ──────────┤
 *   ├── state │ constants ──┼── T = 256 ────────────────────────┤
 *
 * What persists has the same addresses in all of them (runtime/arena.ts). Code is made when a member is first called; planning,
 * and whether it fits the memory, is over by then. Why: docs/decisions/0049-shape-families.md.
 *
 * Of a dimension that has a maximum alone, the program of the maximum is planned; the arena is its. A program for a smaller extent
 * is made when it is first called, and may not be larger (docs/decisions/0058-bounded-extents.md).
 */
import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { Recent } from "../base/recent.ts";
import type { ChosenProgram } from "../compiler/stored.ts";
import { elementsOf, type Shape } from "../ir/type.ts";
import type { Target } from "../runtime/device.ts";
import { requireArena } from "../runtime/executable.ts";
import { fail } from "../trace/arguments.ts";
import type { AnyFunction, FlatArguments } from "../trace/function.ts";
import { tensor } from "../trace/literal.ts";
import { ArrayStorage, newArray } from "../trace/storage.ts";
import { storageOf, Tensor } from "../trace/tensor.ts";
import { leafCount, unflatten } from "../trace/tree.ts";
import { type Maker, typesOf } from "./compile.ts";
import { spec } from "./create.ts";
import { currentHost } from "./host.ts";
import { programCounter } from "./many-programs.ts";
import { placedFigures } from "./placed-figures.ts";
import {
  type AllowedExtents,
  type Extents,
  mapNamed,
  parseShapes,
  requireAxes,
  type ShapeOptions,
} from "./shape-axes.ts";
import { extentsText, familyText } from "./shape-family-text.ts";
import type { TracedProgram } from "./traced-program.ts";

/** One member of a family: what its program needs. */
export interface ShapeMember {
  /** By name. */
  readonly extents: Extents;
  readonly arenaBytes: number;
  /** Of these, kept between runs. */
  readonly persistentBytes: number;
  readonly lowerBoundBytes: number;
  readonly predictedMs: number;
}

/** What the programs of a family need, before any of them runs; as text, a table. */
export interface ShapeFamilyInfo {
  /** Of the arena that all of them run in: that of the largest. */
  readonly arenaBytes: number;
  /** From the smallest to the largest. */
  readonly members: readonly ShapeMember[];
  toString(): string;
}

/** A member that is planned. */
interface Planned {
  readonly target: Target;
  readonly source: TracedProgram;
  readonly placed: ChosenProgram;
}

interface Length {
  readonly extent: number;
  /** The first tensor that has it. */
  readonly path: string;
}

/** @internal */
export class ShapeFamily {
  readonly #fn: AnyFunction;
  readonly #name: string;
  readonly #options: ShapeOptions;
  readonly #extents: ReadonlyMap<string, AllowedExtents>;
  /** Every combination of extents that is planned before the first run, from the smallest to the largest. */
  readonly #members: readonly Extents[];
  /** By the key of its arguments, until it is loaded. */
  readonly #planned: Recent<string, Planned>;

  /** @param programs how many are kept */
  constructor(fn: AnyFunction, options: ShapeOptions, programs: number) {
    this.#fn = fn;
    this.#name = options.name ?? (fn.name || "the compiled function");
    this.#options = options;
    this.#extents = parseShapes(options);
    requireAxes(options);
    this.#members = [...this.#extents].reduce<readonly Extents[]>(
      (made, [name, { planned }]) => made.flatMap((member) => planned.map((extent) => ({ ...member, [name]: extent }))),
      [{}],
    );
    const { length } = this.#members;
    if (length > programs) {
      const help = `keep them all: { programs: ${length} }; or give fewer extents`;
      fail("InvalidArgument", `${options.caller}: shapes has ${length} members, and programs is ${programs}`, help);
    }
    this.#planned = new Recent(programs);
  }

  /** The arguments of a call: of a member's shapes, or padded to them, and then their lengths behind them. */
  fit(given: readonly unknown[]): readonly unknown[] {
    const lengths = this.#lengthsOf(given);
    const member = new Map([...lengths].map(([name, length]) => [name, this.#extentFor(name, length)]));
    if (!this.#options.pad) return given;
    return this.#withLengths(this.#resized(given, member, paddedTo), lengths);
  }

  /** The arguments as the function gets them inside another trace: as they are, and then their lengths. */
  unpadded(given: readonly unknown[]): readonly unknown[] {
    return this.#options.pad ? this.#withLengths(given, this.#lengthsOf(given)) : given;
  }

  /** Arguments like these for every member; which extents the named axes have here does not matter. */
  lists(given: readonly unknown[]): readonly (readonly unknown[])[] {
    return this.#listsOf(this.unpadded(given));
  }

  /** A traced member that is planned and not loaded yet. */
  source(key: string): TracedProgram | undefined {
    return this.#planned.peek(key)?.source;
  }

  /** The plan of a program. Before the first one all members are planned, and room is made for the largest. */
  plan(maker: Maker, source: TracedProgram, target: Target): ChosenProgram {
    const { key } = source.flat;
    const args = argumentsOf(source.flat);
    const members = this.#planAll(maker, target, this.#listsOf(args), source);
    const arenaBytes = largestOf(members);
    maker.kept.arena.memory.reserve(arenaBytes);
    const planned = this.#planned.peek(key);
    if (!planned) return this.#planSmaller(maker, source, target, arenaBytes);
    this.#planned.delete(key);
    return planned.placed;
  }

  /** The plan for an extent below a maximum, in the arena of the maximum. */
  #planSmaller(maker: Maker, source: TracedProgram, target: Target, arenaBytes: number): ChosenProgram {
    const lengths = this.#lengthsOf(argumentsOf(source.flat));
    const extents = Object.fromEntries([...lengths].map(([name, { extent }]) => [name, extent]));
    const asked = plannedFor(extents, () => assembled(maker, target, source));
    if (asked.plan.height <= arenaBytes) return asked;
    // the function does more at this extent: what does not fit is recomputed
    const memory = { ...maker.request.memory, budgetBytes: arenaBytes };
    const help = `the arena is that of the maximum, and this extent needs a larger one: list it: shapes: ${this.#listed(extents)}`;
    return plannedFor(
      extents,
      () => assembled({ ...maker, request: { ...maker.request, memory } }, target, source),
      help,
    );
  }

  /** `shapes` with lists in place of maximums, and some extents in them. */
  #listed(extents: Extents): string {
    const texts = [...this.#extents].map(([name, { planned, isBounded }]) => {
      const more = isBounded ? [extents[name] ?? 1] : [];
      return `${name}: [${[...new Set([...more, ...planned])].join(", ")}]`;
    });
    return `{ ${texts.join(", ")} }`;
  }

  /** What all members need for arguments like these. */
  info(maker: Maker, given: readonly unknown[]): ShapeFamilyInfo {
    const lists = this.lists(given);
    const largest = maker.reader.trace(at(lists, lists.length - 1));
    maker.kept.settle(largest);
    const members = this.#planAll(maker, maker.kept.target.target, lists, largest);
    const arenaBytes = largestOf(members);
    return { arenaBytes, members, toString: () => familyText({ arenaBytes, members }, this.#bounded) };
  }

  /** Names of dimensions that have a maximum alone. */
  get #bounded(): ReadonlySet<string> {
    return new Set([...this.#extents].flatMap(([name, { isBounded }]) => (isBounded ? [name] : [])));
  }

  /** The extent of every named dimension, which all tensors agree on. */
  #lengthsOf(args: readonly unknown[]): ReadonlyMap<string, Length> {
    const lengths = new Map<string, Length>();
    mapNamed(this.#options, this.#fn, args, ({ path, tensor: own, names }) => {
      names?.forEach((name, axis) => {
        if (name === null) return;
        const extent = at(own.shape, axis);
        const first = lengths.get(name);
        if (!first) lengths.set(name, { extent, path });
        else if (first.extent !== extent) {
          const summary = `${this.#name}: ${name} is ${first.extent} in ${first.path} and ${extent} in ${path}`;
          fail("ShapeMismatch", summary, "axes of one name have one extent in a call");
        }
      });
      return own;
    });
    const missing = [...this.#extents.keys()].find((name) => !lengths.has(name));
    if (missing === undefined) return lengths;
    const help = "pass the arguments that axes names";
    return fail("InvalidArgument", `${this.#name}: no argument of this call has the dimension ${missing}`, help);
  }

  /** The member's extent for a length. */
  #extentFor(name: string, { extent, path }: Length): number {
    const { planned: extents = [], isBounded = false } = this.#extents.get(name) ?? {};
    if (isBounded) return this.#belowMaximum(name, { extent, path }, at(extents, 0));
    const { pad } = this.#options;
    const found = extents.find((own) => (pad ? own >= extent : own === extent));
    if (found !== undefined) return found;
    const summary = `${this.#name}: ${name} is ${extent} in ${path}, and its members are ${extents.join(", ")}`;
    const shorter = "with pad: true shorter ones are padded, and the function is given the length";
    return fail(
      "ShapeMismatch",
      summary,
      `${pad ? "" : `${shorter}; `}add ${extent} to shapes.${name}, or pass a part`,
    );
  }

  /** The length itself: where there is a maximum, nothing is padded. */
  #belowMaximum(name: string, { extent, path }: Length, max: number): number {
    if (extent >= 1 && extent <= max) return extent;
    const help = extent < 1 ? "pass at least one" : `raise shapes.${name}.max, or pass a part`;
    return fail("ShapeMismatch", `${this.#name}: ${name} is ${extent} in ${path}, and is from 1 to ${max}`, help);
  }

  /** Arguments with other extents of named axes. */
  #resized(
    args: readonly unknown[],
    extents: ReadonlyMap<string, number>,
    make: (own: Tensor, shape: Shape) => Tensor,
  ): readonly unknown[] {
    return mapNamed(this.#options, this.#fn, args, ({ tensor: own, names }) => {
      const shape = own.shape.map((extent, axis) => extents.get(names?.[axis] ?? "") ?? extent);
      return make(own, shape);
    });
  }

  #listsOf(args: readonly unknown[]): readonly (readonly unknown[])[] {
    return this.#members.map((member) =>
      this.#resized(args, new Map(Object.entries(member)), (own, shape) => spec(shape, own.dtype)),
    );
  }

  /** The function's last argument: scalars, so that a program serves every length up to its own. */
  #withLengths(args: readonly unknown[], lengths: ReadonlyMap<string, Length>): readonly unknown[] {
    const last: unknown[] = [...args];
    last[Math.max(args.length, this.#fn.length - 1)] = Object.fromEntries(
      [...this.#extents.keys()].map((name) => [name, tensor(lengths.get(name)?.extent ?? 0, { dtype: "i32" })]),
    );
    return Array.from(last);
  }

  /** Plans what is not planned yet, the largest first; `own` is the trace of one of them. */
  #planAll(
    maker: Maker,
    target: Target,
    lists: readonly (readonly unknown[])[],
    own: TracedProgram,
  ): readonly ShapeMember[] {
    const { kept, reader } = maker;
    const members = lists.map((list, i): ShapeMember | null => {
      const { key } = reader.read(list);
      const planned = this.#planned.peek(key);
      const placed = planned?.target === target ? planned.placed : null;
      const figures = kept.peek(key)?.figures ?? (placed && placedFigures(placed));
      return figures && memberOf(at(this.#members, i), figures);
    });
    for (let i = lists.length - 1; i >= 0; i--) {
      if (members[i]) continue;
      const [list, extents] = [at(lists, i), at(this.#members, i)];
      const source = reader.read(list).key === own.flat.key ? own : reader.trace(list);
      const placed = plannedFor(extents, () => assembled(maker, target, source));
      const flat = typesOf(source.flat);
      this.#planned.add(flat.key, { target, source: { ...source, flat }, placed });
      members[i] = memberOf(extents, placedFigures(placed));
    }
    return members.filter((member) => member !== null);
  }
}

function assembled({ kept, request }: Maker, target: Target, source: TracedProgram): ChosenProgram {
  const host = currentHost();
  const placed = host.planner.assemble(source, target.description, request, host);
  requireArena(placed.base + placed.plan.height, target.description);
  kept.counts.planned++;
  return placed;
}

/** Names the member in errors, which have a help of their own or this one. */
function plannedFor<T>(extents: Extents, plan: () => T, advice?: string): T {
  try {
    return plan();
  } catch (error) {
    if (!(error instanceof TidemarkError)) throw error;
    const { code, summary, where, help } = error;
    throw new TidemarkError(code, `for ${extentsText(extents)}: ${summary}`, { where, help: advice ?? help });
  }
}

function memberOf(extents: Extents, figures: Omit<ShapeMember, "extents">): ShapeMember {
  const { arenaBytes, persistentBytes, lowerBoundBytes, predictedMs } = figures;
  return { extents, arenaBytes, persistentBytes, lowerBoundBytes, predictedMs };
}

const largestOf = (members: readonly ShapeMember[]): number =>
  members.reduce((largest, { arenaBytes }) => Math.max(largest, arenaBytes), 0);

/** The arguments that were taken apart. */
function argumentsOf({ tensors, trees, numbers }: FlatArguments): readonly unknown[] {
  let next = 0;
  return trees.map((tree, argument) => {
    const count = leafCount(tree);
    next += count;
    const own = numbers.flatMap((number) => (number.argument === argument ? [number.value] : []));
    return unflatten(tree, tensors.slice(next - count, next), own);
  });
}

/** The tensor with zeros behind its elements along each axis that is longer now. */
function paddedTo(own: Tensor, shape: Shape): Tensor {
  if (own.shape.every((extent, axis) => extent === shape[axis])) return own;
  const storage = storageOf(own);
  if (storage.abstract) return spec(shape, own.dtype);
  const [from, to] = [storage.read(), newArray(own.dtype, elementsOf(shape))];
  const copy = (axis: number, start: number, into: number): void => {
    const extent = at(own.shape, axis);
    if (axis === own.rank - 1) {
      to.set(from.subarray(start, start + extent), into);
      return;
    }
    const [fromStride, toStride] = [own.shape, shape].map((s) => elementsOf(s.slice(axis + 1))) as [number, number];
    for (let i = 0; i < extent; i++) copy(axis + 1, start + i * fromStride, into + i * toStride);
  };
  copy(0, 0, 0);
  return new Tensor(new ArrayStorage(own.dtype, shape, to));
}

/** What compiled functions use for several shapes. @internal */
export interface ShapeFamilies {
  familyOf(fn: AnyFunction, options: ShapeOptions, programs: number): ShapeFamily;
  /** Is told of each program that a function is compiled for; `name` is the function's. */
  counterOf(name: string): (args: FlatArguments) => void;
}

/** @internal */
export const shapeFamilies: ShapeFamilies = {
  familyOf: (fn, options, programs) => new ShapeFamily(fn, options, programs),
  counterOf: programCounter,
};
