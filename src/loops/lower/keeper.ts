/**
 * @file Which states a loop of unknown length keeps, as code that decides while it runs: the schedule of
 * node/reverse/online.ts, where the two rules and their sources are explained. Kept states form a list in order of turns,
 * so that one in the middle is given up without moving the others:
 *
 *     list     0 ⇄ 4 ⇄ 9                turns; `tail` is the last
 *     rows     [ s₀ │ s₉ │ s₄ │ ▫ ]     where they lie; ▫ is `spare`, with the state before the turn that is running
 *
 * A state is offered once the turn after it begins: only then is it known not to be that of the last turn. If it is kept,
 * the row of the one that is given up for it is the next spare one; nothing is copied for that.
 *
 *     up to β(s, 2) turns    posts, which lie s + 1, s, s - 1, … apart, are kept, and between them what there is room for;
 *                            the leftmost that is no post goes first
 *     beyond                 kept states have levels; the rightmost one that has a higher level behind it goes first
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

/** What is known of a row. A post has level 1 and others 0, until levels are given out. */
const FIELDS = ["turn", "next", "before", "level"] as const;
type Field = (typeof FIELDS)[number];
const ROW_BYTES = 4 * FIELDS.length;

/** Bytes of the table of rows. */
export const tableBytes = (slots: number): number => (slots + 1) * ROW_BYTES;

const LOCALS = ["tail", "held", "post", "gap", "leaves", "q", "stop", "pending"] as const;

/** Decides about states as they come. `spare` is the row of the state before the turn that is running. */
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

  /** Before the first turn: nothing is kept, the first post is turn 0. */
  begin(): readonly Statement[] {
    const { held, post, gap, q, stop, pending, tail } = this.#of;
    return [
      ...[set(this.spare, int(0)), set(held, int(0)), set(tail, int(0)), set(post, int(0))],
      // from the first post to the second
      ...[set(gap, int(this.#slots + 1)), set(q, int(0)), set(stop, int(0)), set(pending, int(2))],
    ];
  }

  /** The state before `turn`, which is in the spare row, is not that of the last turn. */
  offer(turn: Int): readonly Statement[] {
    const change = Math.min(MOST_ITERATIONS, ((this.#slots + 2) * (this.#slots + 1)) / 2);
    return [choose(below(turn, int(change)), this.#offerEarly(turn), this.#offerLate(turn, change))];
  }

  #offerEarly(turn: Int): readonly Statement[] {
    const { held, post, gap, q, tail } = this.#of;
    const [row, isPost, isFull] = [read(this.spare), same(turn, read(post)), same(read(held), int(this.#slots))];
    const near = below(minus(turn, this.#get("turn", read(tail))), int(2));
    const noMore = int(MOST_ITERATIONS);
    const passes = intOp("and", isFull, either(same(read(post), noMore), near));
    return [
      store(this.#at("level", row), isPost),
      choose(
        isPost,
        [
          ...this.#keepEarly(turn, isFull),
          // The last gap between posts is 3.
          choose(
            below(read(gap), int(3)),
            [set(post, noMore)],
            [set(post, plus(read(post), read(gap))), set(gap, plus(read(gap), -1))],
          ),
        ],
        [choose(passes, [], this.#keepEarly(turn, isFull))],
      ),
      // q is the leftmost that may go: the second that was kept, then whatever follows what went.
      choose(intOp("and", same(read(q), int(0)), below(int(1), read(held))), [set(q, this.#get("next", int(0)))]),
    ];
  }

  #keepEarly(turn: Int, isFull: Int): readonly Statement[] {
    const { q, leaves } = this.#of;
    return [
      choose(
        isFull,
        [
          repeatWhile(same(this.#get("level", read(q)), int(1)), [set(q, this.#get("next", read(q)))]),
          set(leaves, read(q)),
          ...this.#append(turn),
          set(q, this.#get("next", read(leaves))),
          ...this.#giveUp(read(leaves)),
        ],
        this.#appendFree(turn),
      ),
    ];
  }

  #offerLate(turn: Int, change: number): readonly Statement[] {
    const { q, leaves, stop, tail, pending } = this.#of;
    return [
      choose(same(turn, int(change)), [
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
          ...this.#append(turn),
          ...this.#giveUp(read(leaves)),
        ],
      ),
    ];
  }

  /** The spare row becomes the last of the list. */
  #append(turn: Int): readonly Statement[] {
    const { tail } = this.#of;
    const row = read(this.spare);
    return [
      store(this.#at("turn", row), turn),
      store(this.#at("before", row), read(tail)),
      store(this.#at("next", read(tail)), row),
      set(tail, row),
    ];
  }

  /** The same where there is room: the next row is spare. */
  #appendFree(turn: Int): readonly Statement[] {
    const { held } = this.#of;
    return [...this.#append(turn), set(held, plus(read(held), 1)), set(this.spare, read(held))];
  }

  /** A row leaves the list, which neither begins nor ends with it, and is spare. */
  #giveUp(row: Int): readonly Statement[] {
    const [before, next] = [this.#get("before", row), this.#get("next", row)];
    return [store(this.#at("next", before), next), store(this.#at("before", next), before), set(this.spare, row)];
  }

  /** After the last turn: turns and rows of what is kept, in order, and the rows that are left (ops/record-while.ts). */
  finish(places: Int): readonly Statement[] {
    const { held } = this.#of;
    const [n, row]: readonly [Local, Local] = [{ name: "n" }, { name: "row" }];
    const slots = this.#slots;
    const turnAt = plus(times(read(n), 4), places);
    const rowAt = plus(turnAt, 4 * (slots + 1));
    return [
      set(n, int(0)),
      set(row, int(0)),
      repeatWhile(below(read(n), read(held)), [
        store(turnAt, this.#get("turn", read(row))),
        store(rowAt, read(row)),
        set(row, this.#get("next", read(row))),
        set(n, plus(read(n), 1)),
      ]),
      // Rows are taken in order, so with one for each state that is held and the spare one the others are free.
      repeatWhile(below(read(n), int(slots)), [store(rowAt, plus(read(n), 1)), set(n, plus(read(n), 1))]),
      store(plus(places, 4 * slots), read(held)),
      store(plus(places, 4 * (2 * slots + 1)), read(this.spare)),
    ];
  }
}
