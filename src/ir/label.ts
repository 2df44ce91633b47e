/**
 * @file Names of values that users did not name, from what made them. `Node.within` says which parts of the program a node
 * was recorded in, outermost first: scopes of the user, and functions of the library, with brackets.
 *
 *   block#2/attention()/scores()                  a node of the library's attention, in the second scope `block`
 *   block#2/attention():params_blocks_1_qkv:      a node that makes the cotangent of such a value (`cotangentWithin`)
 *
 * The rest of a name is its origin: the parameter that a product or a lookup took, or else the operation.
 *
 *   x @ qkv + qkvb        qkv           an offset or scale is part of the product
 *   gelu(x @ fc)          fc.gelu       an operation on its result is not
 *   exp(scores - max)     exp           there is no parameter
 *
 * Together: `block1.attention.qkv`, `d_block1.attention.qkv`. Where the user has no scopes, the parameter's path tells the
 * part: `blocks0.attention.qkv`.
 */
import { at } from "../base/invariant.ts";
import { isFloat } from "../kernel/dtype.ts";
import type { Node, Value } from "./graph.ts";

/** How many operations are followed back to a parameter. */
const DEPTH = 8;
/** Names are shorter than this, unless their ends are longer: parts in the middle are left out. */
const LENGTH = 60;
const CALL = "()";

/** A function of the library, as a part. */
export const libraryPart = (name: string): string => `${name}${CALL}`;

/** Where a value comes from; nothing of a value that only a nameless parameter makes. */
export interface Origin {
  /** Name of a parameter. */
  readonly weight?: string | undefined;
  readonly op?: string | undefined;
}

/** What origins are found with. */
export interface Surroundings {
  producer(value: Value): Node | undefined;
  /** The name of a parameter, if values are to be named after it. */
  weight(param: Value): string | undefined;
}

/** Views, and whatever else costs nothing but index arithmetic. */
const isView = ({ op: { lower }, inputs }: Node): boolean =>
  lower.kind === "map" && lower.fusion === "always" && inputs.length > 0;

const isPointwise = ({ op: { lower } }: Node): boolean => lower.kind === "map" && lower.pointwise === true;

/** The value that views lead to. */
export function shownValue(value: Value, { producer }: Pick<Surroundings, "producer">): Value {
  let shown = value;
  for (let node = producer(shown); node && isView(node); node = producer(shown)) shown = at(node.inputs, 0);
  return shown;
}

/** Calls of a function have no name but the function's. */
const ownName = ({ op, within }: Node): string | undefined =>
  op.lower.kind === "region" && within !== undefined ? undefined : op.name;

/** Indices and masks are no weights. */
const weightName = (param: Value, { weight }: Surroundings): string | undefined =>
  isFloat(param.type.dtype) ? weight(param) : undefined;

/** Of the operands that are computed in the same part, the one that was defined last: the main line of the program. */
function mainOperand(node: Node, operands: readonly Value[], { producer }: Surroundings): Value | undefined {
  let main: Value | undefined;
  let latest = -1;
  for (const operand of operands) {
    const maker = producer(operand);
    const id = maker?.outputs[0]?.id ?? -1;
    if (maker?.within === node.within && id > latest) [main, latest] = [operand, id];
  }
  return main;
}

export function originOf(value: Value, around: Surroundings, depth: number = DEPTH): Origin {
  const shown = shownValue(value, around);
  const node = around.producer(shown);
  if (!node) {
    const weight = weightName(shown, around);
    return { weight, op: weight === undefined ? around.producer(value)?.op.name : undefined };
  }
  const all = node.inputs.map((input) => shownValue(input, around));
  // Constants say nothing.
  const operands = all.filter((v) => around.producer(v)?.inputs.length !== 0);
  const weights = operands.flatMap((v) => (around.producer(v) ? [] : (weightName(v, around) ?? [])));
  const weight = weights.at(-1);
  if (node.op.lower.kind === "control") return { op: node.op.name };
  if (!isPointwise(node)) return weight && operands.length > 1 ? { weight } : { weight, op: ownName(node) };
  const main = depth > 0 ? mainOperand(node, operands, around) : undefined;
  const before: Origin = main ? originOf(main, around, depth - 1) : {};
  // An offset or scale of something is named after it.
  if (weight && weights.length < operands.length) {
    return before.weight ? { weight: before.weight, op: before.op && node.op.name } : { weight };
  }
  return { weight: weight ?? before.weight, op: node.op.name };
}

/** `Node.within` for the cotangent of a value. */
export function cotangentWithin(value: Value, around: Surroundings): string {
  const { weight = "", op = "" } = originOf(value, around);
  return `${around.producer(shownValue(value, around))?.within ?? ""}:${weight}:${op}`;
}

/** The part and origin of the value whose cotangent a node makes; null if it makes none. */
export function cotangentOrigin(within: string | undefined): (Origin & { readonly within: string }) | null {
  if (!within?.includes(":")) return null;
  const [path = "", weight, op] = within.split(":");
  return { within: path, weight: weight || undefined, op: op || undefined };
}

/** A parameter's containers up to the innermost that is numbered, and what it is called in them. */
interface WeightParts {
  readonly containers: readonly string[];
  readonly own: readonly string[];
}

/** What a weight of a layer is called that has no other of its kind. */
const PLAIN = /^(w|b|weight|kernel)$/;

/**
 * Numbers go with the word before them: `state_params_blocks_0_qkv` is `qkv` in `blocks0`. A plain name is left out where
 * another tells the layer: `layers_0_w` is `layers0`, `qkv_w` is `qkv`.
 */
function weightParts(name: string): WeightParts {
  const words = name.split("_").filter((word) => word !== "");
  const root = words.lastIndexOf("params");
  const parts: string[] = [];
  let numbered = 0;
  for (const word of words.slice(/^\d/.test(words[root + 1] ?? "0") ? Math.max(0, root) : root + 1)) {
    if (/^\d+$/.test(word) && parts.length > 0) {
      const before = parts.pop() ?? "";
      parts.push(`${before}${/\d$/.test(before) ? "_" : ""}${word}`);
      numbered = parts.length;
    } else parts.push(word);
  }
  const named = PLAIN.test(parts.at(-1) ?? "") && parts.length > 1 && !/^params\d+$/.test(parts.at(-2) ?? "");
  const kept = named ? parts.slice(0, -1) : parts;
  const cut = Math.min(numbered, kept.length - 1);
  return { containers: kept.slice(0, cut), own: kept.slice(cut) };
}

/** The paths of parts that have another part of the same name beside them, of all that nodes were recorded in. */
export function repeatedParts(withins: Iterable<string>): ReadonlySet<string> {
  const first = new Map<string, string>();
  const repeated = new Set<string>();
  for (const within of withins) {
    let outer = "";
    for (const part of (within.split(":")[0] ?? "").split("/")) {
      const path = `${outer}/${part.replace(/#.*$/, "")}`;
      const known = first.get(path);
      if (known === undefined) first.set(path, part);
      else if (known !== part) repeated.add(path);
      outer = `${outer}/${part}`;
    }
  }
  return repeated;
}

/** Parts as they are printed: scopes of one name side by side are numbered from 0. */
function partNames(parts: readonly string[], repeated: ReadonlySet<string>): readonly string[] {
  let outer = "";
  return parts.map((part) => {
    const [scope = "", number = "1"] = part.split("#");
    const path = `${outer}/${scope}`;
    outer = `${outer}/${part}`;
    if (part.endsWith(CALL)) return part.slice(0, -CALL.length);
    const name = scope.replace(/^@/, "");
    return repeated.has(path) ? `${name}${/\d$/.test(name) ? "_" : ""}${Number(number) - 1}` : name;
  });
}

const NO_WEIGHT: WeightParts = { containers: [], own: [] };

/** The name of a value from this part and origin; undefined if nothing is known about it. */
export function labelOf(within: string, origin: Origin, repeated: ReadonlySet<string>): string | undefined {
  const parts = within === "" ? [] : within.split("/");
  const { containers, own } = origin.weight === undefined ? NO_WEIGHT : weightParts(origin.weight);
  const hasScopes = parts.some((part) => !part.endsWith(CALL));
  const places = [...(hasScopes ? [] : containers), ...partNames(parts, repeated)];
  const said = new Set(places.map(withoutNumber));
  const rest = [...own.filter((part) => !said.has(part)), ...(origin.op === undefined ? [] : [origin.op])];
  // An operation of the same name as its function, and a part within one of the same name, are said once.
  const all = [...places, ...rest].filter(
    (part, i, list) => part !== list[i - 1] && part !== withoutNumber(list[i - 1]),
  );
  return all.length === 0 ? undefined : shortened(all).join(".");
}

const withoutNumber = (part = ""): string => part.replace(/_?\d+$/, "");

/** Without parts from the middle, if all are too long. */
function shortened(parts: readonly string[]): readonly string[] {
  const kept = [...parts];
  while (kept.length > 3 && kept.join(".").length > LENGTH) kept.splice(Math.floor((kept.length - 1) / 2), 1);
  return kept;
}
