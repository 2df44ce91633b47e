/**
 * @file Operations: one declaration with everything about an operation that does not depend on a target. No layer asks an
 * operation for its name; every fact that a layer needs is a field here. Optional fields are facts that most operations lack.
 */

import type { Accumulator, ScalarType } from "../kernel/dtype.ts";
import type { Expr, Index } from "../kernel/expr.ts";
import type { Accumulation, Combine, Nest, Operand, RoutineNest, Span, Window, Within } from "../kernel/loops.ts";
import type { Position } from "../kernel/position.ts";
import type { BatchRule } from "./batch.ts";
import type { Build } from "./build.ts";
import type { Control, Wiring } from "./control.ts";
import type { OpFacts } from "./facts.ts";
import type { Graph, Node, Value } from "./graph.ts";
import type { TensorType } from "./type.ts";

/** Attributes are plain data so that they print, parse and compare. */
export type Attr = number | string | boolean | readonly Attr[];
/** Attributes of a node, by name. */
export type Attrs = { readonly [key: string]: Attr };
/** No attributes. */
export type NoAttrs = Record<never, never>;

/** ∂y/∂xᵢ of an elementwise operation as graph expressions over the inputs x and the output y. */
export type Partial<A> = "one" | "minus_one" | "zero" | ((b: Build, x: readonly Value[], y: Value, attrs: A) => Value);

/** An application y = op(x) in forward mode: the tangents of x, null for zero, are given; that of y is wanted. */
export interface PushforwardSite<A> {
  readonly x: readonly Value[];
  readonly y: Value;
  readonly tangents: readonly (Value | null)[];
  readonly attrs: A;
}

/** An application op(x) in reverse mode: the cotangent `ct` of the result is given; that of input `input` is wanted. */
export interface TransposeSite<A> {
  readonly x: readonly Value[];
  readonly ct: Value;
  readonly input: number;
  readonly attrs: A;
}

/** An application op(x) that is linear, in reverse mode: cotangents of all results are given, those of all inputs are wanted. */
export interface LinearSite<A> {
  readonly x: readonly Value[];
  readonly cts: readonly Value[];
  readonly attrs: A;
}

/** The same where the rule may read the result y. */
export interface PullbackSite<A> extends TransposeSite<A> {
  readonly y: Value;
}

/**
 * Both modes follow from each form; a rule never computes the primal. Only inputs of a float type have derivatives.
 *
 * - elementwise: yᵢ depends on the inputs' i-th elements alone.
 * - multilinear: linear in each input of `linear` (all float inputs by default) on its own; `transpose` is the
 *   cotangent of one input. Forward mode replaces an input by its tangent.
 * - linear: linear in all inputs jointly, with one result or several; `transpose` has the cotangents of all inputs. Forward mode is one
 *   application to all tangents.
 * - general: both modes by hand, tested against each other. `null` stands for zero.
 * - region: the operation is defined by its regions and is differentiated through them (see autodiff/).
 */
export type Derivative<A> =
  | { readonly kind: "none" }
  | { readonly kind: "elementwise"; readonly partials: readonly Partial<A>[] }
  | {
      readonly kind: "multilinear";
      /** Inputs that it is linear in; the others are not differentiated (indices). Default: every float input. */
      readonly linear?: readonly number[];
      /** Linear in all of them jointly (add-like: concat, scatter_add): forward mode is one application to all tangents. */
      readonly jointly?: boolean;
      transpose(b: Build, site: TransposeSite<A>): Value;
    }
  | { readonly kind: "linear"; transpose(b: Build, site: LinearSite<A>): readonly Value[] }
  | {
      readonly kind: "general";
      jvp(b: Build, site: PushforwardSite<A>): Value | null;
      vjp(b: Build, site: PullbackSite<A>): Value | null;
    }
  | {
      readonly kind: "region";
      /** Without one nothing is differentiated through it: only the planner makes it. */
      rule?(node: Node): RegionRule;
    };

/** How an operation with regions is differentiated. */
export type RegionRule =
  /** A plain call: its nodes take its place. */
  | { readonly kind: "inline"; readonly body: Graph }
  /** A checkpointed call: its nodes run once more before their backward. Or nodes that compute the same as the operation. */
  | { readonly kind: "replay"; readonly body: Graph }
  /** A call whose first result says whether anything flows back through the others. */
  | { readonly kind: "gated"; readonly body: Graph }
  /** x… → y… ++ saved…, and saved… ++ ct of y… → ct of x…; the first `results` are y…. */
  | {
      readonly kind: "custom_vjp";
      readonly maker: string;
      readonly results: number;
      readonly forward: Graph;
      readonly backward: Graph;
      /** x… → y… in operations that have forward mode; without one there is none. */
      readonly expansion?: Graph;
    }
  /** x… ++ t of x… → t of y…, linear in the tangents. */
  | { readonly kind: "custom_jvp"; readonly tangent: Graph }
  /** Its derivative is another loop, reverse of a loop, or branch. */
  | { readonly kind: "control"; readonly control: Control };

/** What an operation does, as a count. */
export interface Cost {
  readonly flops: number;
}

/** Reads one element of an input at a position of that input's shape. */
export type Reader = (at: Position) => Expr;

/** What the lowering of an operation is given. */
export interface LowerContext<A> {
  readonly inputs: readonly Reader[];
  readonly inTypes: readonly TensorType[];
  readonly outType: TensorType;
  readonly attrs: A;
}

/**
 * A matrix product that computes some or all elements of a result: those at `place`, of the row-major result [...batch, m, n]
 * if not given.
 */
export interface ContractPart<A> extends ContractShape {
  a(c: LowerContext<A>, batch: readonly Index[], i: Index, k: Index): Expr;
  b(c: LowerContext<A>, batch: readonly Index[], k: Index, j: Index): Expr;
  readonly place?: (batch: readonly Index[], i: Index, j: Index) => readonly Index[];
  /** Outside of these, factors are zero. */
  readonly within?: readonly Within[];
  /** What the sum starts from, where that is not nothing. */
  start?(c: LowerContext<A>, batch: readonly Index[], i: Index, j: Index): Expr;
  /** The part of k that is added, where that is data; not of a product with a `run`. */
  span?(c: LowerContext<A>, batch: readonly Index[]): Span;
}

export interface ContractShape {
  readonly batch: readonly number[];
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** Length of the runs of k along which both sides read memory in even strides; divides k. Default: all of k. */
  readonly run?: number;
  /** The factors of n and k, outermost first, if each is a product of several extents. */
  readonly columns?: readonly number[];
  readonly depths?: readonly number[];
  /** Of a convolution, if it moves by one. */
  readonly window?: Window;
}

/** Attention: extents, and reads of operands at places (kernel/loops.ts says what each is). */
export interface AttendPart {
  readonly batch: readonly number[];
  readonly group: number;
  readonly rows: number;
  readonly cols: number;
  readonly depth: number;
  readonly width: number;
  length(batch: readonly Index[]): Index | null;
  sees(batch: readonly Index[]): readonly [least: Index | null, most: Index | null];
  q(batch: readonly Index[], group: Index, i: Index, l: Index): Expr;
  k(batch: readonly Index[], j: Index, l: Index): Expr;
  v(batch: readonly Index[], j: Index, l: Index): Expr;
  score(batch: readonly Index[], group: Index, pair: readonly [i: Index, j: Index], product: Expr): Expr;
  /** Factor of a weight after the softmax, in a type; null: 1. */
  weight(batch: readonly Index[], group: Index, pair: readonly [i: Index, j: Index], dtype: ScalarType): Expr | null;
  /** Number of a query head among all of a batch. */
  head(batch: readonly Index[], group: Index): Index;
  readonly backward: {
    /** Factor of the scores, and so of the cotangents of q and k. */
    readonly scale: number;
    logsum(batch: readonly Index[], group: Index, i: Index): Expr;
    delta(batch: readonly Index[], group: Index, i: Index): Expr;
    g(batch: readonly Index[], group: Index, i: Index, l: Index): Expr;
  } | null;
}

/** The part of a kernel under construction that an operation with nests of its own sees. */
export interface KernelBuild {
  readonly operands: Operand[];
  /** The operand of a result. */
  outputOperand(i: number): number;
  /** An operand that is workspace. */
  scratch(dtype: Accumulator, elements: number): number;
}

/** What a target says of nests that operations make themselves (target/description.ts). */
export interface NestTarget {
  readonly threads?: number | undefined;
  readonly collectivesAlone?: true;
}

/**
 * How the output is computed, element by element (kernel/loops.ts has the forms). Results are row-major.
 *
 * `map` may be computed inside any consumer. `fusion` says when that is wise:
 *  - "always": costs nothing but index arithmetic (views, constants, counters); never stored for its own sake
 *  - "once": computed where it is used if that is in one place
 *
 * `pointwise`: every element depends on the elements of the inputs with the same number alone.
 */
export type Lowering<A> =
  | {
      readonly kind: "map";
      readonly fusion: "always" | "once";
      readonly pointwise?: true;
      value(c: LowerContext<A>, at: Position): Expr;
    }
  | {
      readonly kind: "reduce";
      readonly combine: Combine;
      /** Extents of the reduce counters, outermost first; and whether the last one is the input's last axis. */
      counters(
        inTypes: readonly TensorType[],
        attrs: A,
      ): { readonly extents: readonly number[]; readonly order: "sequential" | "interleaved" };
      body(c: LowerContext<A>, at: Position, r: readonly Index[]): Expr;
    }
  /** Along an axis, acc = acc · scale + body from 0 on; each element of the result is the accumulator there. */
  | {
      readonly kind: "scan";
      /** Inputs that are the body and, where there is one, the scale. */
      readonly body: number;
      readonly scale: number | null;
      /** Default: add. Others take the place of the sum, from their identity on, and have no scale. */
      readonly combine?: Accumulation;
      axis(inTypes: readonly TensorType[], attrs: A): number;
      readonly reverse: (attrs: A) => boolean;
    }
  | {
      readonly kind: "contract";
      /** Products that together compute every element of the result once. */
      parts(inTypes: readonly TensorType[], attrs: A): readonly ContractPart<A>[];
    }
  /** Copy of input 0 with element `target(u)` increased by `value(u)` for every u in `updates`; null drops the update. */
  | {
      readonly kind: "scatter";
      /** Default: add. */
      readonly combine?: Accumulation;
      updates(inTypes: readonly TensorType[], attrs: A): readonly number[];
      target(
        c: LowerContext<A>,
        u: Position,
      ): { readonly bounds: readonly import("../kernel/expr.ts").Bound[]; readonly index: Index };
      value(c: LowerContext<A>, u: Position): Expr;
    }
  /**
   * Copy of input 0 in which element `target(u)` is `value(u)` for every u in `updates`; no two have one target. When the
   * copy is in place, only those elements are touched.
   */
  | {
      readonly kind: "update";
      updates(inTypes: readonly TensorType[], attrs: A): readonly number[];
      target(c: LowerContext<A>, u: Position): Index;
      value(c: LowerContext<A>, u: Position): Expr;
    }
  /** Input by input into slices of the output along an axis. */
  | { readonly kind: "concat"; axis(attrs: A): number }
  | { readonly kind: "shuffle" }
  /** Of each row of the only input along an axis, the numbers of the elements in order; the result has the first of them. */
  | { readonly kind: "sort"; readonly axis: (attrs: A) => number; readonly descending: (attrs: A) => boolean }
  /** Maps one after the other, which the operation makes itself: programs that do not use it do not have the code. */
  | {
      readonly kind: "nests";
      /** It reads its inputs where they are stored, row after row: nothing is computed in front of it or behind it. */
      readonly alone?: true;
      nests(build: KernelBuild, c: LowerContext<A>, target?: NestTarget): readonly Nest[];
    }
  /** Results: result and logsum, or cotangents of q, k and v. */
  | { readonly kind: "attend"; part(c: LowerContext<A>): AttendPart }
  /**
   * Steps for each matrix, the last two axes (kernel/routine.ts); `to` is the operand of the result. Where it says so, the result starts as a copy of input 0, over
   * which it may be written; that input is then not read.
   */
  | {
      readonly kind: "routine";
      readonly copies: boolean;
      nest(c: LowerContext<A>, to: number): Omit<RoutineNest, "flops">;
    }
  /** Regions: inlined before lowering, or lowered by the node's own region (fusion groups). */
  | { readonly kind: "region" }
  /** Regions that run several times or not at all: programs within the program, never part of a kernel. */
  | {
      readonly kind: "control";
      /** The regions that run, and the values bound to them. */
      control(node: Node): Control;
      /** How inputs and results are wired to regions; null where the planner decided about that and passes may not. */
      wiring(node: Node): Wiring | null;
      /** How often each region runs, where that is known; otherwise it shows in the cost alone. */
      runs?(attrs: A): readonly number[];
      /** Of a loop inside of another: for each of several devices the iterations of that one in which it runs, once; null: not known. */
      turns?(attrs: A): Turns | null;
      /** Bytes that are copied in addition to the work of regions. */
      copied?(attrs: A, inputs: readonly TensorType[]): number;
    };

/** By device and by iteration of the loop around. */
export type Turns = readonly (readonly boolean[])[];

/**
 * The result shows elements of its only input, each at most once: to a user who changes tensors (trace/cell.ts) the two
 * are one. `write` is the input with other elements in their place; null where elements are shown more than once, so that
 * there is no writing. `add` is the input with `update` added to the elements shown; without it the view shows all
 * elements, and `write` does not look at the input.
 */
export interface ViewRule<A> {
  readonly write: ((b: Build, x: Value, update: Value, attrs: A) => Value) | null;
  readonly add?: (b: Build, x: Value, update: Value, attrs: A) => Value;
}

/** Reference data: every element type as doubles, bools and integers exactly. */
export type Reference = Float64Array;

/** What the reference meaning of an operation is given. */
export interface EvaluateContext<A> {
  readonly inputs: readonly Reference[];
  readonly inTypes: readonly TensorType[];
  readonly outTypes: readonly TensorType[];
  readonly attrs: A;
  readonly regions: readonly Graph[];
  /** Evaluates a region on inputs. */
  run(graph: Graph, inputs: readonly Reference[]): readonly Reference[];
}

/** One case for the generic tests: input types, attributes, and the range to draw inputs from. */
export interface Sample<A> {
  readonly inputs: readonly TensorType[];
  readonly attrs: A;
  /** Inputs are drawn from [lo, hi), integers rounded down; per input or for all. Default [-2, 2). */
  readonly range?: readonly [number, number] | readonly (readonly [number, number])[];
  /** Added to the diagonals of matrices, the last two axes, per input or for the first: so are they positive definite, or regular. */
  readonly diagonal?: number | readonly number[];
  /** The operation is not differentiable (or not smooth enough for differences) over this range. */
  readonly smooth?: boolean;
}

/** One operation: types, derivative, cost, lowering, reference meaning, samples. */
export interface OpDef<A = NoAttrs> {
  /** snake_case, as in the text of graphs. */
  readonly name: string;
  /** Attributes that are omitted from the text when equal to these. */
  readonly defaults: { readonly [K in keyof A]?: A[K] };
  /** Types of the results; throws TidemarkError when the inputs do not fit. */
  infer(inputs: readonly TensorType[], attrs: A, regions: readonly Graph[]): readonly TensorType[];
  readonly derivative: Derivative<A>;
  cost(inputs: readonly TensorType[], outputs: readonly TensorType[], attrs: A, regions: readonly Graph[]): Cost;
  readonly lower: Lowering<A>;
  /** The result shares the storage of this input when both are stored (reshape). */
  readonly alias: number | null;
  /** For operations whose result is a view to the user. */
  readonly view?: ViewRule<A>;
  /**
   * Elementwise, and the reference in doubles, rounded once to the result's type, has the bits of every target: integers
   * and bools, and of floats what IEEE 754 rounds correctly. Such an operation on constants is a constant (`fold`).
   */
  readonly exactInDouble?: true;
  /** How it acts on a batch; operations on elements need not say, others run in a loop without. */
  readonly batch?: BatchRule<A>;
  /** Facts that passes may use. */
  readonly facts?: OpFacts<A>;
  /** The region that computes exactly the results from the inputs: the pass `inline` puts it in the node's place. */
  readonly inlines?: number;
  /** Rewrites to something simpler, or null; must not change a bit of the result. Used by `canonicalize`. */
  simplify(b: Build, node: Node, attrs: A): Value | null;
  evaluate(c: EvaluateContext<A>): readonly Reference[];
  /** Cases for tests, which also say what attributes there are; made when asked for, since most programs never do. */
  samples(): readonly Sample<A>[];
}

/** The one sanctioned `any`: attribute types are contravariant. */
// biome-ignore lint/suspicious/noExplicitAny: see above
export type AnyOp = OpDef<any>;
