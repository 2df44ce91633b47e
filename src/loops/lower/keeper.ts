/**
 * @file Code that decides at run time which states a loop of unknown length keeps: the schedule of
 * node/reverse/online.ts, which explains the two rules and their sources. Kept states form a linked list ordered by
 * iteration, so one in the middle can be dropped without moving the others:
 *
 *     list     0 ⇄ 4 ⇄ 9                iterations; `tail` is the last
 *     rows     [ s₀ │ s₉ │ s₄ │ ▫ ]     their storage; ▫ is `spare`, with the state before the running iteration
 *
 * A state is offered once the next iteration begins: only then is it known not to be that of the last iteration. If it
 * is kept, the row of the state dropped for it becomes the spare row; nothing is copied.
 *
 *     up to β(s, 2) iterations    posts, s + 1, s, s - 1, … iterations apart, are kept, and states between them while
 *                                 there is room; the leftmost state that is not a post is dropped first
 *     beyond                      kept states have levels; the rightmost one followed by a higher level is dropped first
 */
import {
  choose,
  type Int,
  int,
  intOp,
  type Local,
  loadAt,
  plus,
  read,
  repeatWhile,
  type Statement,
  set,
  store,
  times,
} from "../../codegen/script.ts";
import { MOST_ITERATIONS } from "../../ops/loops.ts";

const minus = (a: Int, b: Int): Int => intOp("sub", a, b);
const below = (a: Int, b: Int): Int => intOp("lt", a, b);
const same = (a: Int, b: Int): Int => intOp("eq", a, b);
const either = (a: Int, b: Int): Int => below(int(0), plus(a, b));

/** Fields of a row. A post has level 1 and others 0, until levels are assigned. */
const FIELDS = ["iteration", "next", "before", "level"] as const;
type Field = (typeof FIELDS)[number];
const ROW_BYTES = 4 * FIELDS.length;

/** Bytes of the table of rows. */
export const tableBytes = (slots: number): number => (slots + 1) * ROW_BYTES;

const LOCALS = ["tail", "held", "post", "gap", "leaves", "q", "stop", "pending"] as const;

/** Decides which states to keep, online. `spare` is the row of the state before the running iteration. */
export class OnlineKeeper {
  readonly spare: Local = { name: "spare" };
  readonly #slots: number;
  readonly #table: Int;
  readonly #of: Readonly<Record<(typeof LOCALS)[number], Local>>;

  constructor(slots: number, table: Int) {
    this.#slots = slots;
    this.#table = table;
    this.#of = Object.fromEntries(LOCALS.map((name) => [name, { name }])) as Record<(typeof LOCALS)[number], Local>;
  }

  #at(field: Field, row: Int): Int {
    return plus(plus(times(row, ROW_BYTES), this.#table), 4 * FIELDS.indexOf(field));
  }

  #get(field: Field, row: Int): Int {
    return loadAt(this.#at(field, row));
  }

  /** Initial table: nothing is kept, the first post is iteration 0. */
  begin(): readonly Statement[] {
    const { held, post, gap, q, stop, pending, tail } = this.#of;
    return [
      ...[set(this.spare, int(0)), set(held, int(0)), set(tail, int(0)), set(post, int(0))],
      // from the first post to the second
      ...[set(gap, int(this.#slots + 1)), set(q, int(0)), set(stop, int(0)), set(pending, int(2))],
    ];
  }

  /** Offers the state before `iteration`, which is in the spare row and is not that of the last iteration. */
  offer(iteration: Int): readonly Statement[] {
    const change = Math.min(MOST_ITERATIONS, ((this.#slots + 2) * (this.#slots + 1)) / 2);
    return [choose(below(iteration, int(change)), this.#offerEarly(iteration), this.#offerLate(iteration, change))];
  }

  #offerEarly(iteration: Int): readonly Statement[] {
    const { held, post, gap, q, tail } = this.#of;
    const [row, isPost, isFull] = [read(this.spare), same(iteration, read(post)), same(read(held), int(this.#slots))];
    const near = below(minus(iteration, this.#get("iteration", read(tail))), int(2));
    const noMore = int(MOST_ITERATIONS);
    const passes = intOp("and", isFull, either(same(read(post), noMore), near));
    return [
      store(this.#at("level", row), isPost),
      choose(
        isPost,
        [
          ...this.#keepEarly(iteration, isFull),
          // The last gap between posts is 3.
          choose(
            below(read(gap), int(3)),
            [set(post, noMore)],
            [set(post, plus(read(post), read(gap))), set(gap, plus(read(gap), -1))],
          ),
        ],
        [choose(passes, [], this.#keepEarly(iteration, isFull))],
      ),
      // q is the leftmost droppable state: the second kept one, then the successor of the last one dropped.
      choose(intOp("and", same(read(q), int(0)), below(int(1), read(held))), [set(q, this.#get("next", int(0)))]),
    ];
  }

  #keepEarly(iteration: Int, isFull: Int): readonly Statement[] {
    const { q, leaves } = this.#of;
    return [
      choose(
        isFull,
        [
          repeatWhile(same(this.#get("level", read(q)), int(1)), [set(q, this.#get("next", read(q)))]),
          set(leaves, read(q)),
          ...this.#append(iteration),
          set(q, this.#get("next", read(leaves))),
          ...this.#giveUp(read(leaves)),
        ],
        this.#appendFree(iteration),
      ),
    ];
  }

  #offerLate(iteration: Int, change: number): readonly Statement[] {
    const { q, leaves, stop, tail, pending } = this.#of;
    return [
      choose(same(iteration, int(change)), [
        set(q, read(tail)),
        set(stop, int(0)),
        store(this.#at("level", int(0)), int(MOST_ITERATIONS)),
      ]),
      choose(
        same(read(q), read(stop)),
        [
          set(pending, plus(read(pending), 1)),
          set(q, read(tail)),
          set(stop, read(tail)),
          repeatWhile(below(this.#get("level", read(stop)), read(pending)), [
            set(stop, this.#get("before", read(stop))),
          ]),
        ],
        [
          set(leaves, read(q)),
          set(q, this.#get("before", read(q))),
          store(this.#at("level", read(this.spare)), read(pending)),
          set(pending, int(0)),
          ...this.#append(iteration),
          ...this.#giveUp(read(leaves)),
        ],
      ),
    ];
  }

  /** Appends the spare row to the list. */
  #append(iteration: Int): readonly Statement[] {
    const { tail } = this.#of;
    const row = read(this.spare);
    return [
      store(this.#at("iteration", row), iteration),
      store(this.#at("before", row), read(tail)),
      store(this.#at("next", read(tail)), row),
      set(tail, row),
    ];
  }

  /** The same while rows are free: the next row becomes the spare one. */
  #appendFree(iteration: Int): readonly Statement[] {
    const { held } = this.#of;
    return [...this.#append(iteration), set(held, plus(read(held), 1)), set(this.spare, read(held))];
  }

  /** Removes a row from the middle of the list; it becomes the spare one. */
  #giveUp(row: Int): readonly Statement[] {
    const [before, next] = [this.#get("before", row), this.#get("next", row)];
    return [store(this.#at("next", before), next), store(this.#at("before", next), before), set(this.spare, row)];
  }

  /**
   * After the last iteration: writes the iterations and rows of the kept states in order, then the free rows
   * (ops/record.ts).
   */
  finish(places: Int): readonly Statement[] {
    const { held } = this.#of;
    const [n, row]: readonly [Local, Local] = [{ name: "n" }, { name: "row" }];
    const slots = this.#slots;
    const iterationAt = plus(times(read(n), 4), places);
    const rowAt = plus(iterationAt, 4 * (slots + 1));
    return [
      set(n, int(0)),
      set(row, int(0)),
      repeatWhile(below(read(n), read(held)), [
        store(iterationAt, this.#get("iteration", read(row))),
        store(rowAt, read(row)),
        set(row, this.#get("next", read(row))),
        set(n, plus(read(n), 1)),
      ]),
      // Rows are allocated in order, so all rows beyond the kept states and the spare one are free.
      repeatWhile(below(read(n), int(slots)), [store(rowAt, plus(read(n), 1)), set(n, plus(read(n), 1))]),
      store(plus(places, 4 * slots), read(held)),
      store(plus(places, 4 * (2 * slots + 1)), read(this.spare)),
    ];
  }
}
