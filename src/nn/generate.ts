/**
 * @file Text from a language model, token by token. Keys and values of all positions are state that stays in the arena, donated
 * to every step and changed in place; so are the parameters, which are therefore copied once for a text and not at every step.
 * There are two programs: the prompt is read in chunks of a fixed number of tokens, the last one filled up, and then one token
 * at a time. A prompt of another length compiles nothing.
 *
 *   prompt of 11, chunk 4      [····][····][···0]   → scores behind token 10     capacity 10: the last chunk begins at 6, and
 *   step                                    [·]     → scores behind token 11     two tokens are read once more
 */
import { type Compiled, compile } from "../api/compile.ts";
import { type CompileAsyncOptions, compileEach } from "../api/compile-async.ts";
import { div } from "../api/elementwise.ts";
import { type AbortSignalLike, nextTask, requireSignal } from "../api/event-loop.ts";
import { dynamicSlice } from "../api/indexing.ts";
import { softmax } from "../api/normalize.ts";
import type { CompileOptions } from "../api/request.ts";
import { reshape } from "../api/shape.ts";
import { flatten, unflatten } from "../api/tree.ts";
import { grouped } from "../base/errors.ts";
import { invariant } from "../base/invariant.ts";
import { typeText } from "../ir/type.ts";
import { describe, fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import { tensor } from "../trace/literal.ts";
import { ArrayStorage } from "../trace/storage.ts";
import { Tensor } from "../trace/tensor.ts";
import type { Tree } from "../trace/tree.ts";
import { requireCounts } from "./layer.ts";
import { drawn, drawnAt, highest, requireSampling, type SamplingOptions } from "./sampling.ts";

/** Scores of the next token from tokens, with a cache of the positions before. */
export interface LanguageModel<P extends Tree = Tree, C extends Tree = Tree> {
  /** An empty cache for so many positions, for instance the caches of all blocks (`CachedLayer`). */
  initCache(capacity: number): C;
  /**
   * For tokens i32[n], the first of which is number `position` (i32[]) of its text: the scores of the token after each,
   * [n, vocabulary], and the cache with them.
   */
  extend(params: P, tokens: Tensor, cache: C, position: Tensor): readonly [Tensor, C];
}

/** Options of {@link generator}: those of `compile`, and the capacity of its cache. */
export interface GeneratorOptions extends Omit<CompileOptions, "donate" | "static" | "shapes" | "axes" | "pad"> {
  /** Positions that the cache has room for: the longest text. */
  readonly capacity: number;
  /** Tokens of the prompt that are read at once; 32 by default, and no more than the capacity. */
  readonly chunk?: number;
}

/** Options of a generator's `generate`. */
export interface GenerateOptions extends SamplingOptions {
  /** As many as there is room for by default. */
  readonly maxTokens?: number;
  /** A token that ends the text, or several; the one that does is the last that is given. */
  readonly stop?: number | readonly number[];
  /** Called with each token and its number among those generated; waited for if it returns a promise. */
  readonly onToken?: (token: number, index: number) => unknown;
  /**
   * When the cache has no room for another token: `"error"` by default; `"restart"` reads the last half of it once more, as
   * the beginning of a text, and continues.
   */
  readonly whenFull?: "error" | "restart";
  /** Ends the text after the current token. */
  readonly signal?: AbortSignalLike;
}

/** Progress, and how to stop it. */
export type PrepareOptions = Pick<CompileAsyncOptions, "onProgress" | "signal">;

/** Generates texts of one model; keeps its programs from text to text. */
export interface TextGenerator<P extends Tree = Tree> {
  /** Tokens after a prompt, one by one, as they are computed. */
  generate(params: P, prompt: Iterable<number>, options?: GenerateOptions): AsyncGenerator<number, void, undefined>;
  /**
   * Compiles both programs in a worker, for parameters like these, as `compileAsync` does; without it they are compiled on this
   * thread when they are first needed.
   */
  prepare(params: P, options?: PrepareOptions): Promise<void>;
  /** All of them. */
  generateAll(params: P, prompt: Iterable<number>, options?: GenerateOptions): Promise<number[]>;
  /** Memory of the programs, as that of a compiled function. */
  usage(): ReturnType<ReturnType<typeof compile>["usage"]>;
  /** Gives up the programs and their memory. */
  dispose(): void;
}

const GENERATE: OptionKinds<GenerateOptions> = {
  temperature: "a number",
  topK: "a number",
  topP: "a number",
  seed: "a number",
  maxTokens: "a number",
  stop: "anything",
  onToken: "a function",
  whenFull: "a text",
  signal: "anything",
};

const PREPARE: OptionKinds<PrepareOptions> = { onProgress: "a function", signal: "anything" };

const DEFAULT_CHUNK = 32;

/** Below it a draw is that of the highest score already; quotients of scores stay finite in f32. */
const LEAST_TEMPERATURE = 1e-30;

/** Milliseconds between two times that other tasks may run, as in `trainLoop`. */
const YIELD_EVERY = 12;

const i32 = (value: number): Tensor => tensor(value, { dtype: "i32" });

/** What a step changes: parameters stay as they are, but in place. */
interface State<P, C> {
  readonly params: P;
  readonly cache: C;
}

/** Scores and probabilities of the next token. */
interface Row {
  readonly scores: Tensor;
  readonly probabilities: Tensor;
}

/** A function to be compiled: tokens, where they begin, which of them is the last that counts, and the temperature. */
const stepOf =
  <P extends Tree, C extends Tree>(model: LanguageModel<P, C>) =>
  (state: State<P, C>, tokens: Tensor, position: Tensor, given: { last: Tensor; temperature: Tensor }) => {
    const [all, cache] = model.extend(state.params, tokens, state.cache, position);
    const [count, vocabulary] = [tokens.shape[0] ?? 0, all.shape.at(-1) ?? 0];
    if (all.rank !== 2 || all.shape[0] !== count) {
      const help = `return scores of the next token after each of ${count}: [${count}, vocabulary]`;
      fail("ShapeMismatch", `generator: extend returned scores ${typeText(all)} for ${count} tokens`, help);
    }
    const row = count === 1 ? all : dynamicSlice(all, [given.last, 0], [1, vocabulary]);
    const scores = reshape(row, [vocabulary]).cast("f32");
    const found: Row = { scores, probabilities: softmax(div(scores, given.temperature)) };
    return [{ params: state.params, cache }, found] as const;
  };

function requireTokens(prompt: Iterable<number>): number[] {
  const isList = typeof (prompt as Partial<Iterable<number>> | undefined)?.[Symbol.iterator] === "function";
  if (!isList || typeof prompt === "string") {
    fail("InvalidArgument", `generate: the prompt is ${describe(prompt)}`, "give a list of token numbers");
  }
  const tokens = [...prompt];
  const wrong = tokens.findIndex((token) => !(Number.isSafeInteger(token) && token >= 0 && token < 2 ** 31));
  if (wrong >= 0) {
    const summary = `generate: token ${wrong} of the prompt is ${describe(tokens[wrong])}`;
    fail("InvalidArgument", summary, "tokens are whole numbers from 0 on");
  }
  if (tokens.length > 0) return tokens;
  return fail(
    "InvalidArgument",
    "generate: the prompt is empty",
    "give one token at least, such as one that begins texts",
  );
}

/** The tokens that end a text. */
function stopsOf({ stop = [] }: GenerateOptions): ReadonlySet<number> {
  const all = typeof stop === "number" ? [stop] : stop;
  const isList =
    typeof all === "object" && typeof (all as Partial<Iterable<number>> | null)?.[Symbol.iterator] === "function";
  if (isList && [...all].every(Number.isSafeInteger)) return new Set(all);
  return fail("InvalidArgument", `generate: stop is ${describe(stop)}`, "give a token number, or a list of them");
}

/** Options of one text, checked against its room. */
function requireGenerate(options: GenerateOptions, prompt: number, capacity: number): { readonly maxTokens: number } {
  requireOptions("generate", options, GENERATE);
  requireSampling("generate", options);
  requireSignal("generate", options.signal);
  stopsOf(options);
  const { whenFull = "error", maxTokens } = options;
  if (whenFull !== "error" && whenFull !== "restart") {
    fail("InvalidArgument", `generate: whenFull is ${describe(whenFull)}`, 'it is "error" or "restart"');
  }
  if (maxTokens !== undefined && !(Number.isSafeInteger(maxTokens) && maxTokens >= 0)) {
    fail("InvalidArgument", `generate: maxTokens is ${describe(maxTokens)}`, "give a whole number, 0 or more");
  }
  if (whenFull === "restart") return { maxTokens: maxTokens ?? Number.POSITIVE_INFINITY };
  // the last token is not read
  const room = capacity - prompt + 1;
  if (room >= 1 && (maxTokens ?? 0) <= room) return { maxTokens: maxTokens ?? room };
  const wanted = maxTokens === undefined ? "" : `, and ${grouped(maxTokens)} to be generated`;
  const summary = `generate: the cache has room for ${grouped(capacity)} tokens; the prompt has ${grouped(prompt)}${wanted}`;
  return fail("InvalidArgument", summary, 'make a generator of greater capacity, or give whenFull: "restart"');
}

type StepFunction<P extends Tree, C extends Tree> = ReturnType<typeof stepOf<P, C>>;
type Step<P extends Tree, C extends Tree> = Compiled<Parameters<StepFunction<P, C>>, ReturnType<StepFunction<P, C>>>;

const compileOptions = (options: CompileOptions): CompileOptions => ({ name: "generate", ...options, donate: [0] });

/** Arguments of a step of so many tokens, of which only the types are read. */
function stepArguments<P extends Tree, C extends Tree>(state: State<P, C>, count: number) {
  const given = { last: i32(0), temperature: tensor(1) };
  return [state, tensor(new Int32Array(count), { shape: [count] }), i32(0), given] as const;
}

/** The same elements in tensors of their own, which may be donated. */
async function copiesOf<P extends Tree>(params: P): Promise<P> {
  const { leaves, structure } = flatten(params);
  const copy = async (x: Tensor) => new Tensor(new ArrayStorage(x.dtype, x.shape, await x.dataAsync()));
  return unflatten(structure, await Promise.all(leaves.map(copy))) as P;
}

/** A text that is read by a model: the state after its tokens. */
class Reader<P extends Tree, C extends Tree> {
  readonly #step: StepFunction<P, C>;
  readonly #capacity: number;
  readonly #chunk: number;
  readonly #temperature: Tensor;
  #state: State<P, C>;
  /** Tokens that the cache has. */
  tokens: number[] = [];

  constructor(
    step: StepFunction<P, C>,
    state: State<P, C>,
    sizes: { capacity: number; chunk: number; temperature: number },
  ) {
    this.#step = step;
    this.#state = state;
    this.#capacity = sizes.capacity;
    this.#chunk = sizes.chunk;
    // scores themselves decide where the temperature is 0
    this.#temperature = tensor(sizes.temperature === 0 ? 1 : Math.max(sizes.temperature, LEAST_TEMPERATURE));
  }

  #run(tokens: readonly number[], position: number, last: number): Row {
    const ids = tensor(Int32Array.from(tokens), { shape: [tokens.length] });
    const given = { last: i32(last), temperature: this.#temperature };
    const [state, row] = this.#step(this.#state, ids, i32(position), given);
    this.#state = state;
    return row;
  }

  /** Reads a text from its beginning, a chunk at a time; a lone token is a step. */
  read(tokens: readonly number[]): Row {
    this.tokens = [...tokens];
    let [row, start]: [Row | null, number] = [null, 0];
    while (start < tokens.length) {
      const from = Math.min(start, this.#capacity - this.#chunk);
      const isLone = start === tokens.length - 1;
      const size = isLone ? 1 : this.#chunk;
      const begin = isLone ? start : from;
      const part = Array.from({ length: size }, (_, i) => tokens[begin + i] ?? 0);
      const end = Math.min(tokens.length, begin + size);
      row = this.#run(part, begin, end - 1 - begin);
      start = end;
    }
    invariant(row, () => "a text has a token");
    return row;
  }

  /** Reads one more token, or, where there is no room for it, the last half of the text once more. */
  next(token: number): Row {
    if (this.tokens.length === this.#capacity) {
      return this.read([...this.tokens.slice(-Math.floor(this.#capacity / 2)), token].slice(-this.#capacity));
    }
    this.tokens.push(token);
    return this.#run([token], this.tokens.length - 1, 0);
  }
}

/** Token number `index` of a text by the scores of its predecessors. */
async function chosen({ scores, probabilities }: Row, options: SamplingOptions, index: number): Promise<number> {
  const token =
    options.temperature === 0
      ? highest(await scores.dataAsync())
      : drawn(await probabilities.dataAsync(), options, drawnAt(options.seed ?? 0, index));
  if (token !== null) return token;
  return fail(
    "NotANumber",
    `generate: the scores of token ${grouped(index)} are not numbers`,
    "look at the parameters",
  );
}

interface Text<P> {
  readonly params: P;
  readonly prompt: readonly number[];
  readonly options: GenerateOptions;
  readonly maxTokens: number;
}

async function* tokensOf<P extends Tree, C extends Tree>(
  { params, prompt, options, maxTokens }: Text<P>,
  step: StepFunction<P, C>,
  { capacity, chunk, model }: { capacity: number; chunk: number; model: LanguageModel<P, C> },
): AsyncGenerator<number, void, undefined> {
  const { temperature = 1, onToken, signal } = options;
  const stops = stopsOf(options);
  if (maxTokens === 0 || signal?.aborted) return;
  const state = { params: await copiesOf(params), cache: model.initCache(capacity) };
  const reader = new Reader(step, state, { capacity, chunk, temperature });
  let row = reader.read(prompt.length > capacity ? prompt.slice(-Math.ceil(capacity / 2)) : prompt);
  requireVocabulary(prompt, row.scores.shape[0] ?? 0);
  let yielded = performance.now();
  for (let index = 0; ; index++) {
    const token = await chosen(row, options, prompt.length + index);
    const told = onToken?.(token, index);
    if (told instanceof Promise) await told;
    yield token;
    if (stops.has(token) || index + 1 >= maxTokens || signal?.aborted) return;
    row = reader.next(token);
    if (performance.now() - yielded < YIELD_EVERY) continue;
    await nextTask();
    yielded = performance.now();
  }
}

function requireVocabulary(prompt: readonly number[], vocabulary: number): void {
  const wrong = prompt.find((token) => token >= vocabulary);
  if (wrong === undefined) return;
  const summary = `generate: the prompt has token ${grouped(wrong)}, the vocabulary has ${grouped(vocabulary)}`;
  fail("InvalidArgument", summary, `tokens are numbers from 0 to ${grouped(vocabulary - 1)}`);
}

/**
 * Generates texts of a language model.
 *
 * @throws InvalidArgument for a model without `initCache` or `extend`, and for options that are none. What it
 * returns throws InvalidArgument for prompts and options that do not fit, ShapeMismatch where `extend` returns
 * scores of another shape, PlanInfeasible where no plan fits `memory`, and Aborted where `prepare` was aborted
 *
 * @memory Two programs, for a chunk of the prompt and for one token, which `usage` measures; caches have room for
 * `capacity` tokens from the start.
 *
 * @example
 * import { tensor, type Tensor } from "tidemark";
 * import { generator } from "tidemark/nn";
 *
 * // the next token is the one after the last, of five
 * const model = {
 *   initCache: () => ({}),
 *   extend: (params: { next: Tensor }, tokens: Tensor, cache: object) => [params.next.take(tokens), cache] as const,
 * };
 * const next = tensor([0, 1, 2, 3, 4].map((i) => [0, 1, 2, 3, 4].map((j) => (j === (i + 1) % 5 ? 9 : 0))));
 * const { generate } = generator(model, { capacity: 16 });
 * for await (const token of generate({ next }, [3], { maxTokens: 4, temperature: 0 })) console.log(token); // 4, 0, 1, 2
 */
export function generator<P extends Tree, C extends Tree>(
  model: LanguageModel<P, C>,
  options: GeneratorOptions,
): TextGenerator<P> {
  for (const name of ["initCache", "extend"] as const) {
    requireFunction("generator", name, model?.[name], "generator({ initCache, extend }, { capacity })");
  }
  const { capacity, chunk = Math.min(DEFAULT_CHUNK, capacity), ...more } = options ?? {};
  requireCounts("generator", { capacity, chunk });
  if (chunk > capacity) {
    fail("InvalidArgument", `generator: chunks of ${chunk} tokens, room for ${capacity}`, "give a chunk that fits");
  }
  const compiling = compileOptions(more);
  const fn = stepOf(model);
  let step: Step<P, C> = compile(fn, compiling);
  // a text goes on with what has been prepared in the meantime
  const run: StepFunction<P, C> = (...args) => step(...args);
  const generate: TextGenerator<P>["generate"] = (params, given, of = {}) => {
    const prompt = requireTokens(given);
    const { maxTokens } = requireGenerate(of, prompt.length, capacity);
    return tokensOf({ params, prompt, options: of, maxTokens }, run, { capacity, chunk, model });
  };
  return {
    generate,
    prepare: async (params, of = {}) => {
      requireOptions("prepare", of, PREPARE);
      const state = { params, cache: model.initCache(capacity) };
      const sizes = chunk === 1 ? [1] : [chunk, 1];
      const lists = sizes.map((count) => stepArguments(state, count));
      const prepared = await compileEach(fn, lists, { ...compiling, ...of });
      step.dispose();
      step = prepared;
    },
    generateAll: async (params, prompt, of) => {
      const tokens: number[] = [];
      for await (const token of generate(params, prompt, of)) tokens.push(token);
      return tokens;
    },
    usage: () => step.usage(),
    dispose: () => step.dispose(),
  };
}
