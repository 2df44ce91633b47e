/** @file `index.js` and `index.d.ts` of a program that runs without the compiler: `load`, with the types of its function. */
import { at } from "../base/invariant.ts";
import { type TensorType, typeText } from "../ir/type.ts";
import { typeOf } from "../kernel/dtype.ts";
import { FILES, type ProgramTree } from "../runtime/ahead/format.ts";
import { isAbsent, paramsOf } from "../runtime/ahead/values.ts";
import type { AheadSource } from "./ahead-source.ts";

/** Bundlers recognise `new URL("./file", import.meta.url)` and copy the file. */
export function indexText(hasWeights: boolean): string {
  const url = (name: string): string => `new URL("./${name}", import.meta.url)`;
  const files = [
    `program: ${url(FILES.program)}`,
    `wasm: ${url(FILES.code)}`,
    ...(hasWeights ? [`weights: ${url(FILES.weights)}`] : []),
  ];
  return [
    `import { load as loadFrom } from "./${FILES.runtime}";`,
    "",
    "const FILES = {",
    ...files.map((file) => `  ${file},`),
    "};",
    "",
    'export const load = (from = {}) => loadFrom(typeof from === "string" || "href" in from ? from : { ...FILES, ...from });',
    "",
  ].join("\n");
}

const isName = (key: string): boolean => /^[A-Za-z_$][\w$]*$/.test(key);
const memberName = (key: string): string => (isName(key) ? key : JSON.stringify(key));

/** A name that cannot end a comment. */
const inComment = (name: string): string => name.replace(/[^\w .:-]/g, "_");

/** The array that holds the elements of a type. */
function arrayName({ dtype }: TensorType): string {
  const { array } = typeOf(dtype) as { readonly array: { readonly name?: string } };
  return array.name ?? "";
}

const tensorText = (type: TensorType): string => `/* ${typeText(type)} */ ${arrayName(type)}`;

/** How a tensor is written; null: it is not there. */
type LeafText = (tensor: number) => string | null;

/** Literal types have no NaN and no infinities. */
function constantType(text: string): string {
  if (text === "undefined") return text;
  return `${/^(true|false)$/.test(text) || Number.isFinite(Number(text)) ? text : "number"} | undefined`;
}

/** A structure as a TypeScript type; null where all of its tensors are absent. */
function treeText(tree: ProgramTree, leaf: LeafText, indent: string): string | null {
  const deeper = `${indent}  `;
  if (isAbsent(tree, (tensor) => leaf(tensor) === null)) return null;
  if ("tensor" in tree) return leaf(tree.tensor);
  if ("number" in tree) return "number";
  if ("constant" in tree) return constantType(tree.constant);
  if ("list" in tree) return `[${tree.list.map((item) => treeText(item, leaf, indent) ?? "undefined").join(", ")}]`;
  const lines = Object.entries(tree.object).map(([key, item]) => {
    const text = treeText(item, leaf, deeper);
    return `${deeper}${memberName(key)}${text === null ? "?: undefined" : `: ${text}`};`;
  });
  return lines.length === 0 ? "{}" : `{\n${lines.join("\n")}\n${indent}}`;
}

/** The type of a call's arguments. */
function callText({ params, arguments: given }: AheadSource): string {
  const isResident = (param: number): boolean => at(params, param).kind !== "input";
  const leaf: LeafText = (param) => {
    const { type } = at(params, param);
    const text = `${tensorText(type)} | Nested`;
    return isResident(param) ? `undefined | ${text}` : text;
  };
  const wanted = given.filter(({ tree }) => paramsOf(tree).length === 0 || !paramsOf(tree).every(isResident));
  return wanted
    .map(({ name, tree }, i) => `${isName(name) ? name : `arg${i}`}: ${treeText(tree, leaf, "  ") ?? "undefined"}`)
    .join(", ");
}

/** An argument that stays as a whole, with the name of its type. */
interface Resident {
  readonly name: string;
  readonly type: string;
  readonly text: string;
}

function residents({ params, arguments: given }: AheadSource): readonly Resident[] {
  const whole = given.filter(({ tree }) => {
    const own = paramsOf(tree);
    return own.length > 0 && own.every((param) => at(params, param).kind !== "input");
  });
  const leaf: LeafText = (param) => tensorText(at(params, param).type);
  return whole.map(({ name, tree }, i) => {
    const type = `${name.slice(0, 1).toUpperCase()}${name.slice(1)}Values`;
    return { name, type: isName(type) ? type : `Values${i}`, text: treeText(tree, leaf, "") ?? "undefined" };
  });
}

/** The declarations of `index.js`. */
export function typesText(source: AheadSource): string {
  const { graph, donated, result } = source;
  const replaced = new Set(donated.values());
  const resultLeaf: LeafText = (i) => (replaced.has(i) ? null : tensorText(at(graph.results, i).type));
  const stays = residents(source);
  const types = stays.map(
    ({ name, type, text }) =>
      `\n/** ${inComment(name)}, which stays in the arena. */\nexport type ${type} = ${text};\n`,
  );
  const members = stays.flatMap(({ name, type }) => [
    `  read(name: ${JSON.stringify(name)}): ${type};`,
    `  write(name: ${JSON.stringify(name)}, value: Given<${type}>): void;`,
  ]);
  return `/** The program ${inComment(graph.name)}, compiled ahead of time: docs/ahead-of-time.md of tidemark. */

/** Elements as nested arrays, of the shape of the tensor; a scalar is a number. */
export type Nested = number | boolean | readonly Nested[];
/** Elements row-major, as they are in memory; bools are 0 and 1. */
export type Elements = Float32Array | Float64Array | Int32Array | Uint8Array;

/** A tree in which tensors may also be nested arrays. */
export type Given<T> = T extends Elements ? T | Nested : { [K in keyof T]: Given<T[K]> };
${types.join("")}
export interface TensorInfo {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
}

export interface Program {
  /** Runs the program once. Results are copies; one that is state is undefined here and is read by name. */
  (${callText(source)}): ${treeText(result, resultLeaf, "  ") ?? "undefined"};
  /** Of the arena, and of the memory that it is in. */
  readonly arenaBytes: number;
  readonly memoryBytes: number;
  /** Tensors that are given for each call, that are handed out, and that stay in the arena. */
  readonly inputs: readonly TensorInfo[];
  readonly results: readonly TensorInfo[];
  readonly resident: readonly TensorInfo[];
  /** Copies of what stays: a tensor by its name, or all below a name as a tree. */
${members.map((line) => `${line}\n`).join("")}  read<T = Elements>(name: string): T;
  write(name: string, value: Elements | Nested): void;
  /** Everything that stays, as a safetensors file; \`load({ weights })\` takes it. */
  save(): Uint8Array;
}

/** Where a file is, or what is in it. */
export type FileSource = string | { readonly href: string } | ArrayBuffer | Uint8Array | object;

/** Loads the program: its own files, some of them from elsewhere, or all from the URL of a folder. */
export function load(
  from?:
    | string
    | { readonly href: string }
    | { readonly program?: FileSource; readonly wasm?: FileSource; readonly weights?: FileSource | undefined },
): Promise<Program>;
`;
}
