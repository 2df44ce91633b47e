/**
 * @file Sorting numbers, the order of equals kept, without atomics. The numbers of elements 0, 1, 2, … are in the workspace; what
 * comes out is these numbers in order, and which element each is of.
 *
 *   few     a thread for each element counts the elements that come before it: its place
 *   many    by digits of four bits, the lowest first (radix sort). Threads have chunks of neighbouring elements:
 *
 *             count    each thread, the elements of its chunk with digit 0, 1, … 15
 *             add up   over digits, and within a digit over chunks: where the first of each goes
 *             move     each thread, its elements one after the other
 */
import { call, compare, constant, type Expr, type Index } from "../../kernel/expr.ts";
import { addIndex, constIndex, offsetIndex, scaleIndex, valueIndex, varIndex, ZERO } from "../../kernel/index-math.ts";
import { asExpr, type Operand, type Store } from "../../kernel/loops.ts";
import { below, counter, equals, Memories, rowOf } from "./counters.ts";
import { type DeviceClass, type Launch, loop, phase, type Statement, storing, where } from "./program.ts";

/** Elements for each thread of a block up to which each is compared with all others. */
const FEW = 32;
const DIGIT_BITS = 4;
const DIGITS = 2 ** DIGIT_BITS;
/** Elements of a chunk. */
const CHUNK = 64;

/** Where in the workspace numbers are before, which is at 0, and after. */
export interface Sorting {
  /** Elements to sort. */
  readonly count: number;
  /** Of workspace. */
  readonly elements: number;
  /** Numbers in order, and the elements that they are of. */
  readonly numbers: number;
  readonly which: number;
  /** Digits of the largest number, or 0 where elements are compared. */
  readonly digits: number;
}

/** How `count` numbers from 0 to `most` are sorted. */
export function sortingOf(count: number, most: number, { threads }: DeviceClass): Sorting {
  if (count <= FEW * threads) return { count, elements: 3 * count, numbers: count, which: 2 * count, digits: 0 };
  const digits = Math.max(1, Math.ceil(Math.log2(most + 1) / DIGIT_BITS));
  // two halves that take turns, of numbers and elements each; then counts
  const half = (digits % 2) * 2 * count;
  const elements = 4 * count + DIGITS * Math.ceil(count / CHUNK);
  return { count, elements, numbers: half, which: half + count, digits };
}

/** The workspace as i32, and operations on numbers in it. */
class SortMemory extends Memories {
  readonly words: number;

  constructor(operands: readonly Operand[], scratch: number, elements: number) {
    super(operands);
    this.words = this.add({ scope: "global", operand: scratch, dtype: "i32", elements });
  }

  word(): number {
    return this.add({ scope: "local", dtype: "i32", elements: 1 });
  }

  get(index: Index): Expr {
    return this.read(this.words, index);
  }

  put(index: Index, value: Expr): Store {
    return { operand: this.words, index, value };
  }

  value(word: number): Expr {
    return this.read(word, ZERO);
  }
}

const set = (operand: number, value: Expr): Statement => storing({ operand, index: ZERO, value });
const plus = (a: Expr, b: Expr): Expr => call("add", [a, b], "i32");

/** A thread for each element counts those that come before it. */
function byComparing({ count, elements, numbers, which }: Sorting, sort: SortRequest): readonly Launch[] {
  const memories = new SortMemory(sort.operands, sort.scratch, elements);
  const { grid, thread, element, each } = rowOf(count, sort.device, 1);
  const [number, before] = [memories.word(), memories.word()];
  const own = memories.value(number);
  const other = counter("other", count);
  const theirs = memories.get(varIndex(other));
  const earlier = compare("lt", asExpr(varIndex(other)), asExpr(element));
  const same = call("and", [compare("eq", theirs, own), earlier], "bool");
  const isBefore = call("or", [compare("lt", theirs, own), same], "bool");
  const place = valueIndex(memories.value(before), 0, count - 1);
  const body = each([
    set(number, memories.get(element)),
    set(before, constant("i32", 0)),
    ...loop(other, [set(before, plus(memories.value(before), call("convert", [isBefore], "i32")))]),
    storing(memories.put(offsetIndex(place, numbers), own), memories.put(offsetIndex(place, which), asExpr(element))),
  ]);
  return [{ grid, thread, memories: memories.list, body: [phase(...body)] }];
}

/** What is sorted, where. */
export interface SortRequest {
  readonly operands: readonly Operand[];
  readonly scratch: number;
  readonly device: DeviceClass;
}

/** One digit of a radix sort. */
class DigitPass {
  readonly #sorting: Sorting;
  readonly #sort: SortRequest;
  readonly #digit: number;
  readonly #chunks: number;

  constructor(sorting: Sorting, sort: SortRequest, digit: number) {
    this.#sorting = sorting;
    this.#sort = sort;
    this.#digit = digit;
    this.#chunks = Math.ceil(sorting.count / CHUNK);
  }

  /** Where numbers are before (0) or after (1) this pass; their elements follow. */
  #half(after: 0 | 1): number {
    return ((this.#digit + after) % 2) * 2 * this.#sorting.count;
  }

  #memories(): SortMemory {
    return new SortMemory(this.#sort.operands, this.#sort.scratch, this.#sorting.elements);
  }

  launches(): readonly Launch[] {
    return [this.#count(), this.#addUp(), this.#move()];
  }

  /** The count of a chunk's elements with a digit; the digit of a number. */
  #countAt(digit: Index, chunk: Index): Index {
    return addIndex(constIndex(4 * this.#sorting.count), scaleIndex(digit, this.#chunks), chunk);
  }

  #digitOf(number: Expr): Index {
    const shifted = call("shr_u", [number, constant("i32", DIGIT_BITS * this.#digit)], "i32");
    return valueIndex(call("and", [shifted, constant("i32", DIGITS - 1)], "i32"), 0, DIGITS - 1);
  }

  /** A thread for each chunk goes through its elements; `body` is given the element's number in the sequence. */
  #chunked(
    memories: SortMemory,
    start: (chunk: Index) => readonly Statement[],
    body: (e: Index, chunk: Index) => readonly Statement[],
  ): Launch {
    const { grid, thread, element: chunk, each } = rowOf(this.#chunks, this.#sort.device, 1);
    const next = counter("within", CHUNK);
    const e = addIndex(scaleIndex(chunk, CHUNK), varIndex(next));
    const all = loop(next, where(below(e, this.#sorting.count), body(e, chunk)));
    return { grid, thread, memories: memories.list, body: [phase(...each([...start(chunk), ...all]))] };
  }

  #count(): Launch {
    const memories = this.#memories();
    const digit = counter("digit", DIGITS);
    const zero = (chunk: Index): readonly Statement[] =>
      loop(digit, [storing(memories.put(this.#countAt(varIndex(digit), chunk), constant("i32", 0)))]);
    return this.#chunked(memories, zero, (e, chunk) => {
      const number = memories.get(offsetIndex(e, this.#half(0)));
      const index = this.#countAt(this.#digitOf(number), chunk);
      return [storing(memories.put(index, plus(memories.get(index), constant("i32", 1))))];
    });
  }

  /** Each thread of one block adds up neighbouring counts; then what is before each thread's; then before each count. */
  #addUp(): Launch {
    const memories = this.#memories();
    const { threads } = this.#sort.device;
    const counts = DIGITS * this.#chunks;
    const each = Math.ceil(counts / threads);
    const thread = counter("thread", threads);
    const sums = memories.add({ scope: "shared", dtype: "i32", elements: threads });
    const [sum, now] = [memories.word(), memories.word()];
    const t = varIndex(thread);
    const countsOf = (name: string, body: (index: Index) => readonly Statement[]): readonly Statement[] => {
      const next = counter(name, each);
      const i = addIndex(scaleIndex(t, each), varIndex(next));
      return loop(next, where(below(i, counts), body(offsetIndex(i, 4 * this.#sorting.count))));
    };
    const add = phase(
      set(sum, constant("i32", 0)),
      ...countsOf("count", (i) => [set(sum, plus(memories.value(sum), memories.get(i)))]),
      storing({ operand: sums, index: t, value: memories.value(sum) }),
    );
    const other = counter("other", threads);
    const theirs: Store = { operand: sums, index: varIndex(other), value: memories.value(sum) };
    const before = phase(
      ...where(
        [equals(t, 0)],
        [
          set(sum, constant("i32", 0)),
          ...loop(other, [
            set(now, memories.read(sums, varIndex(other))),
            storing(theirs),
            set(sum, plus(memories.value(sum), memories.value(now))),
          ]),
        ],
      ),
    );
    const places = phase(
      set(sum, memories.read(sums, t)),
      ...countsOf("place", (i) => [
        set(now, memories.get(i)),
        storing(memories.put(i, memories.value(sum))),
        set(sum, plus(memories.value(sum), memories.value(now))),
      ]),
    );
    return { grid: [], thread, memories: memories.list, body: [add, before, places] };
  }

  #move(): Launch {
    const memories = this.#memories();
    const { count } = this.#sorting;
    const [number, which, place] = [memories.word(), memories.word(), memories.word()];
    const [from, to] = [this.#half(0), this.#half(1)];
    return this.#chunked(
      memories,
      () => [],
      (e, chunk) => {
        const index = this.#countAt(this.#digitOf(memories.value(number)), chunk);
        const target = valueIndex(memories.value(place), 0, count - 1);
        return [
          storing(
            { operand: number, index: ZERO, value: memories.get(offsetIndex(e, from)) },
            // before the first pass elements are where they are
            {
              operand: which,
              index: ZERO,
              value: this.#digit === 0 ? asExpr(e) : memories.get(offsetIndex(e, from + count)),
            },
          ),
          set(place, memories.get(index)),
          storing(
            memories.put(index, plus(memories.value(place), constant("i32", 1))),
            memories.put(offsetIndex(target, to), memories.value(number)),
            memories.put(offsetIndex(target, to + count), memories.value(which)),
          ),
        ];
      },
    );
  }
}

export function sortLaunches(sorting: Sorting, sort: SortRequest): readonly Launch[] {
  if (sorting.digits === 0) return byComparing(sorting, sort);
  return Array.from({ length: sorting.digits }, (_, digit) => new DigitPass(sorting, sort, digit).launches()).flat();
}
