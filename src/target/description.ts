/**
 * @file The description of a target, for every layer left of its code generator: data, and pure functions of kernels. Passes, lowering,
 * the planner and the compiler read it and know no target by name; a new target is a new description beside its code
 * generator (docs/adding-a-target.md).
 *
 *   passes ── fusion ──→ lower ── workspace, shapeLoops ──→ plan ── spaces, work ──→ codegen
 */
import type { DType, ScalarType } from "../kernel/dtype.ts";
import type { ContractNest, Kernel, Nest, Operand } from "../kernel/loops.ts";
import type { MemorySpace, Spaces } from "./space.ts";
import type { CostModel, Work } from "./work.ts";

/** How results are rounded, as far as bits depend on the target. */
export interface ArithmeticProfile {
  /** Equal for profiles with equal bits: runs that are resumed must have the one that they began with. */
  readonly name: string;
  /** A product and the sum that it is added to are rounded once. */
  readonly fusedMultiplyAdd: boolean;
  /**
   * The order of sums of a product with one row or column: along its depth in lanes where the depth has at least so many
   * elements and the rows of the result have fewer, else element by element.
   */
  readonly shortRow: number;
}

/** The order of sums that CPU targets and the interpreter have in common. */
export const COMMON_ORDER: Omit<ArithmeticProfile, "fusedMultiplyAdd" | "name"> = { shortRow: 16 };

/** Limits of one kernel. */
export interface FusionLimits {
  /** Nodes in one kernel. */
  readonly maxNodes: number;
  /** Work an element that may be repeated when a product packs its operand more than once. */
  readonly maxPackedFlops: number;
  /** Evaluations in one kernel, where a value that is read at several positions counts once for each. */
  readonly maxEvaluations: number;
  /** Values that one kernel stores: all of them are live while it runs. */
  readonly maxStored: number;
  /** Cheap values are stored as well, not computed wherever they are read: to measure what that is worth. */
  readonly storesCheap?: boolean;
}

/** Limits under which kernels are large enough to save most memory traffic, and small enough to compile fast. */
export const COMMON_FUSION: FusionLimits = {
  maxNodes: 48,
  maxPackedFlops: 8,
  maxEvaluations: 128,
  maxStored: Number.POSITIVE_INFINITY,
};

/** A nest before it has workspace. */
export type UnplacedNest = Exclude<Nest, ContractNest> | Omit<ContractNest, "scratch">;

/** The part of a description that lowering uses. */
export interface LoweringTarget {
  /** Rounding and the order of sums, as far as they are the target's. Equal names mean equal bits. */
  readonly arithmetic: ArithmeticProfile;
  /** Threads that share the units of a `staged` nest. Without, elements are what is shared, and the target is given maps instead. */
  readonly threads?: number | undefined;
  /** Collectives stay what they are on the only device of a group, where they would be copies: to try them with one device. */
  readonly collectivesAlone?: true;
  /**
   * Elements, of the nest's own type, that its code needs for packed panels, partial sums and so on. They become a buffer of the
   * plan and an operand of the kernel (`nest.scratch`), for any kind of nest; a kernel may use no other workspace, and its
   * initial content is undefined.
   */
  workspace(nest: UnplacedNest, operands: readonly Operand[]): number;
  /**
   * A name for the order of a product's sums where it is not that of kernel/loops.ts, and null where it is; equal for equal orders.
   * Whether it is another one may depend on all extents. Programs run in strips of rows only where a strip has the order of the
   * whole.
   */
  sumOrder?(nest: Omit<ContractNest, "scratch">): string | null;
  /**
   * Whether the sums of a product can start from values in memory: they are one chain of additions along the depth. Sums over
   * rows then go on from strip to strip.
   */
  startsSums?(nest: Omit<ContractNest, "scratch">): boolean;
  /** The same kernel with its loops ordered and split for the target's memory hierarchy; which elements are computed stays. */
  shapeLoops(kernel: Kernel): Kernel;
}

/** A description as data: the target's name, and the options that its description is made of (api/described.ts). */
export interface Rebuild {
  readonly target: string;
  readonly options: unknown;
}

/** What the planner knows of a target: its memories, its element types, and what its kernels need and cost. */
export interface TargetDescription extends LoweringTarget {
  /** As users and reports call it. */
  readonly name: string;
  /**
   * Any text; equal for descriptions that answer alike, in any process. With a key, plans are cached for later processes
   * (decision 27); `undefined`: they are not.
   */
  readonly key: string | undefined;
  /**
   * Of the library's own targets alone: what other threads and processes make the same description of. Without, plans are made on
   * the thread that asks.
   */
  readonly rebuild?: Rebuild;
  /**
   * Memory spaces (target/space.ts). Kernels compute in the first, which holds the arena; others are reached by copies. Each has
   * an `alignment`, the most bytes that plans may use (`capacity`), the largest buffer (`largestAllocation`), the largest
   * possible arena (`largestArena`, checked when a program is loaded), and whether the host can access it.
   */
  readonly spaces: Spaces;
  /**
   * Types of elements in memory. A program that needs another type is rejected as `TargetUnsupported` before planning, with every
   * missing type and an operation that needs it; the target checks nothing.
   */
  readonly storageTypes: readonly DType[];
  /** Types that kernels compute in; likewise. */
  readonly computeTypes: readonly ScalarType[];
  /** Limits of one kernel: nodes, work, evaluations, stored values. */
  readonly fusion: FusionLimits;
  /** Renders `collective` nests: it has a communicator. Without, collectives are refused by name. */
  readonly collectives?: true;
  /** Its collectives can go on while other steps run. */
  readonly overlapsCollectives?: true;
  /** Bytes at multiples of which rows of matrices start that products read or write; by default anywhere. */
  readonly rowBytes?: number;
  /**
   * What a kernel does: product flops, other arithmetic, bytes, calls.
   * @param inPlace its first result is written over an input: a nest that only copies that input does nothing
   */
  work(kernel: Kernel, inPlace: boolean): Work;
  /** The rates that convert work to time, before a machine is measured; `linkRate` is that of copies between spaces. */
  readonly rates: CostModel;
}

/** The space of the arena. */
export const arenaSpace = ({ spaces }: Pick<TargetDescription, "spaces">): MemorySpace => spaces[0];

/**
 * The description of a target of this library, which other threads and processes can rebuild. Copies of the object have neither
 * its key nor that: they may answer otherwise, and would be taken for the original.
 */
export function rebuildable(
  name: string,
  options: unknown,
  answers: Omit<TargetDescription, "name" | "key" | "rebuild">,
): TargetDescription {
  const rebuild: Rebuild = { target: name, options };
  // defined so, fields are not enumerable: spreading leaves them out
  return Object.defineProperties({ name, ...answers } as TargetDescription, {
    key: { value: `${name} ${JSON.stringify(options)}` },
    rebuild: { value: rebuild },
  });
}
