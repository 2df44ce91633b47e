/** @file Sorting rows as WebAssembly (codegen/cpu/sort.ts has the method). */
import type { Operand, SortNest } from "../../kernel/loops.ts";
import { FEW_PAIRS, isEmptySort, sortLayout, sortTiles } from "../cpu/sort.ts";
import type { AddressNumber } from "../operand-addresses.ts";
import { live, UNDIVIDED, type Units } from "../units.ts";
import { emitUnits } from "./emit-loops.ts";
import { Code, type ModuleBuilder, OP } from "./encoder.ts";
import { emitMap } from "./nests.ts";
import { VectorEmitter } from "./vector.ts";

const SIGN_BIT = -0x80000000;
/** Bytes of a pair; where its high half is, above the number of the element. */
const PAIR = 8;
const HIGH = 4;
/** Bytes of the counts of one byte's digits. */
const COUNTS = 1024;

/** Numbers of functions of the module: all elements of a row, or the first of them. */
export interface SortFunctions {
  readonly row: number;
  readonly select: number;
}

/** Runs `body` for addresses from that in `local` up to that in `end`, one pair after the other. */
function eachPair(code: Code, local: number, end: number, body: () => void): void {
  code.while(
    () => code.get(local).get(end).op(OP.i32LtU),
    () => {
      body();
      code.increment(local, PAIR);
    },
  );
}

/** start + pairs · PAIR on the stack. */
const behind = (code: Code, start: number, pairs: number): Code =>
  code.get(start).get(pairs).i32Const(3).op(OP.i32Shl).op(OP.i32Add);

/** Pairs by insertion: compared as whole numbers of 64 bits. */
function insertion(code: Code, pairs: number, n: number): void {
  const [i, j, end, moved] = [code.local("i32"), code.local("i32"), code.local("i32"), code.local("i64")];
  behind(code, pairs, n).set(end);
  code.get(pairs).i32Const(PAIR).op(OP.i32Add).set(i);
  eachPair(code, i, end, () => {
    code.get(i).i64Load().set(moved).get(i).set(j);
    code.while(
      () => {
        code.get(pairs).get(j).op(OP.i32LtU);
        code.if(
          "i32",
          () => code.get(j).i32Const(PAIR).op(OP.i32Sub).i64Load().get(moved).op(OP.i64GtU),
          () => code.i32Const(0),
        );
      },
      () => {
        code.get(j).get(j).i32Const(PAIR).op(OP.i32Sub).i64Load().i64Store();
        code.increment(j, -PAIR);
      },
    );
    code.get(j).get(moved).i64Store();
  });
}

/** Locals of the function that sorts pairs, behind its parameters. */
class PairSorter {
  readonly code: Code = new Code(["i32", "i32", "i32", "i32"]);
  readonly pairs = 0;
  readonly room = 1;
  readonly counts = 2;
  readonly n = 3;
  readonly #i = this.code.local("i32");
  readonly #end = this.code.local("i32");
  readonly #from = this.code.local("i32");
  readonly #to = this.code.local("i32");
  readonly #before = this.code.local("i32");
  readonly #own = this.code.local("i32");
  readonly #place = this.code.local("i32");

  /** Runs `body` for each pair from the address in a local on. */
  #each(start: number, body: () => void): void {
    this.code.get(start).set(this.#i);
    behind(this.code, start, this.n).set(this.#end);
    eachPair(this.code, this.#i, this.#end, body);
  }

  /** Where the count for a byte of the pair at an address is, but for the offset of that byte's counts. */
  #countOf(pair: number, byte: number): Code {
    const { code } = this;
    code.get(pair).i32Load(HIGH);
    if (byte > 0) code.i32Const(8 * byte).op(OP.i32ShrU);
    return code.i32Const(255).op(OP.i32And).i32Const(2).op(OP.i32Shl).get(this.counts).op(OP.i32Add);
  }

  #countAll(): void {
    const { code } = this;
    const place = this.#place;
    code
      .get(this.counts)
      .i32Const(0)
      .i32Const(4 * COUNTS)
      .memoryFill();
    this.#each(this.pairs, () => {
      for (let byte = 0; byte < 4; byte++) {
        this.#countOf(this.#i, byte).tee(place).get(place);
        code
          .i32Load(byte * COUNTS)
          .i32Const(1)
          .op(OP.i32Add)
          .i32Store(byte * COUNTS);
      }
    });
  }

  /** Counts of a byte's digits become places, in bytes; then pairs are moved there. */
  #move(byte: number): void {
    const { code } = this;
    const offset = byte * COUNTS;
    const [place, end, before, own] = [this.#place, this.#end, this.#before, this.#own];
    code.i32Const(0).set(before).get(this.counts).set(place);
    code.get(this.counts).i32Const(COUNTS).op(OP.i32Add).set(end);
    code.while(
      () => code.get(place).get(end).op(OP.i32LtU),
      () => {
        code.get(place).i32Load(offset).set(own).get(place).get(before).i32Store(offset);
        behind(code, before, own).set(before).increment(place, 4);
      },
    );
    this.#each(this.#from, () => {
      this.#countOf(this.#i, byte).tee(place).i32Load(offset).tee(own);
      code.get(this.#to).op(OP.i32Add).get(this.#i).i64Load().i64Store();
      code.get(place).get(own).i32Const(PAIR).op(OP.i32Add).i32Store(offset);
    });
    code.get(this.#from).get(this.#to).set(this.#from).set(this.#to);
  }

  emit(): Code {
    const { code, pairs, n } = this;
    code.get(n).i32Const(FEW_PAIRS).op(OP.i32LeS);
    code.if(null, () => {
      insertion(code, pairs, n);
      code.op(OP.return);
    });
    this.#countAll();
    code.get(pairs).set(this.#from).get(this.room).set(this.#to);
    for (let byte = 0; byte < 4; byte++) {
      // where all have one digit there is nothing to move
      this.#countOf(this.#from, byte)
        .i32Load(byte * COUNTS)
        .get(n)
        .op(OP.i32Ne);
      code.if(null, () => this.#move(byte));
    }
    code.get(this.#from).get(pairs).op(OP.i32Ne);
    code.if(null, () => code.get(pairs).get(this.#from).get(n).i32Const(3).op(OP.i32Shl).memoryCopy());
    return code;
  }
}

/** (pairs, room, counts, low, n): runs of pairs with equal high halves, by the second words of keys. */
function addSortTies(module: ModuleBuilder, sortPairs: number): number {
  const code = new Code(["i32", "i32", "i32", "i32", "i32"]);
  const [pairs, room, counts, low, n] = [0, 1, 2, 3, 4] as const;
  const [i, j, end, stop, high] = Array.from({ length: 5 }, () => code.local("i32")) as [
    number,
    number,
    number,
    number,
    number,
  ];
  code.get(pairs).set(i);
  behind(code, pairs, n).set(stop);
  code.while(
    () => code.get(i).get(stop).op(OP.i32LtU),
    () => {
      code.get(i).i32Load(HIGH).set(high);
      code.get(i).i32Const(PAIR).op(OP.i32Add).set(end);
      code.while(
        () => {
          code.get(end).get(stop).op(OP.i32LtU);
          code.if(
            "i32",
            () => code.get(end).i32Load(HIGH).get(high).op(OP.i32Eq),
            () => code.i32Const(0),
          );
        },
        () => code.increment(end, PAIR),
      );
      code.get(end).get(i).op(OP.i32Sub).i32Const(PAIR).op(OP.i32Ne);
      code.if(null, () => {
        code.get(i).set(j);
        eachPair(code, j, end, () => {
          code.get(j);
          code.get(j).i32Load().i32Const(2).op(OP.i32Shl).get(low).op(OP.i32Add).i32Load();
          code.i32Const(SIGN_BIT).op(OP.i32Xor).i32Store(HIGH);
        });
        code.get(i).get(room).get(counts);
        code.get(end).get(i).op(OP.i32Sub).i32Const(3).op(OP.i32ShrU).call(sortPairs);
      });
      code.get(end).set(i);
    },
  );
  return module.add(code);
}

/** Parameters of the functions on rows; `low` is 0 where keys have one word. */
const ROW = { pairs: 0, room: 1, counts: 2, high: 3, low: 4, n: 5, wanted: 6, capacity: 7 } as const;

/** Sorts so many pairs. */
function sortAll(code: Code, count: number, sortPairs: number, sortTies: number): void {
  code.get(ROW.pairs).get(ROW.room).get(ROW.counts).get(count).call(sortPairs);
  code.get(ROW.low);
  code.if(null, () => code.get(ROW.pairs).get(ROW.room).get(ROW.counts).get(ROW.low).get(count).call(sortTies));
}

/** The first word of the element whose number is on the stack, as the high half of a pair. */
const highOf = (code: Code): Code =>
  code.i32Const(2).op(OP.i32Shl).get(ROW.high).op(OP.i32Add).i32Load().i32Const(SIGN_BIT).op(OP.i32Xor);

function addSortRow(module: ModuleBuilder, sortPairs: number, sortTies: number): number {
  const code = new Code(["i32", "i32", "i32", "i32", "i32", "i32"]);
  const [i, place] = [code.local("i32"), code.local("i32")];
  code.get(ROW.pairs).set(place);
  code.while(
    () => code.get(i).get(ROW.n).op(OP.i32LtS),
    () => {
      code.get(place).get(i).i32Store().get(place).get(i);
      highOf(code).i32Store(HIGH).increment(place, PAIR).increment(i, 1);
    },
  );
  sortAll(code, ROW.n, sortPairs, sortTies);
  return module.add(code);
}

/** The first elements of a row: candidates are those not after the last of the best so far. */
function addSortSelect(module: ModuleBuilder, sortPairs: number, sortTies: number): number {
  const code = new Code(Array.from(Object.keys(ROW), () => "i32" as const));
  const [i, kept, j, end] = [code.local("i32"), code.local("i32"), code.local("i32"), code.local("i32")];
  const [pair, last] = [code.local("i64"), code.local("i64")];
  const onlyBest = (): void => {
    code.get(ROW.wanted).set(kept);
    code.get(ROW.low);
    code.if(null, () => {
      code.get(ROW.pairs).set(j);
      behind(code, ROW.pairs, kept).set(end);
      eachPair(code, j, end, () => {
        code.get(j).get(j).i32Load();
        highOf(code).i32Store(HIGH);
      });
    });
    behind(code, ROW.pairs, kept).i32Const(PAIR).op(OP.i32Sub).i64Load();
    // with a second word, whatever is equal in the first may be better
    code.get(ROW.low);
    code.if(
      "i64",
      () => code.i64Const(-1).i64Const(32).op(OP.i64ShrU),
      () => code.i64Const(0),
    );
    code.op(OP.i64Or).set(last);
  };
  code.i64Const(-1).set(last);
  code.while(
    () => code.get(i).get(ROW.n).op(OP.i32LtS),
    () => {
      code.get(kept).get(ROW.capacity).op(OP.i32Eq);
      code.if(null, () => {
        sortAll(code, kept, sortPairs, sortTies);
        onlyBest();
      });
      code.get(i);
      highOf(code).op(OP.i64ExtendI32U).i64Const(32).op(OP.i64Shl).get(i).op(OP.i64ExtendI32U).op(OP.i64Or).tee(pair);
      code.get(last).op(OP.i64LeU);
      code.if(null, () => behind(code, ROW.pairs, kept).get(pair).i64Store().increment(kept, 1));
      code.increment(i, 1);
    },
  );
  sortAll(code, kept, sortPairs, sortTies);
  return module.add(code);
}

export function addSortFunctions(module: ModuleBuilder): SortFunctions {
  // (pairs, room, counts, n): into order, those with equal high halves as they are or by their low halves
  const pairs = module.add(new PairSorter().emit());
  const ties = addSortTies(module, pairs);
  return { row: addSortRow(module, pairs, ties), select: addSortSelect(module, pairs, ties) };
}

/** Parts of the module that sorting uses. */
export interface SortUse {
  readonly functions: SortFunctions;
  readonly addressNumber: AddressNumber;
}

export function emitSort(
  outer: VectorEmitter,
  nest: SortNest,
  operands: readonly Operand[],
  { functions, addressNumber }: SortUse,
): Units {
  if (isEmptySort(nest) || nest.scratch === undefined) return UNDIVIDED;
  const { code, share } = outer;
  const layout = sortLayout(nest);
  const tiles = sortTiles(nest, operands);
  const w = code.local("i32");
  code.get(addressNumber(nest.scratch, 0));
  if (share)
    code
      .get(share.thread)
      .i32Const(4 * layout.elements)
      .op(OP.i32Mul)
      .op(OP.i32Add);
  code.set(w);
  /** The address is computed where it is asked for. */
  const address = (operand: number, offset: number): number => {
    const tile = tiles.offsets[operand - operands.length];
    if (tile === undefined) return addressNumber(operand, offset);
    const made = code.local("i32");
    code
      .get(w)
      .i32Const(4 * (tile + offset))
      .op(OP.i32Add)
      .set(made);
    return made;
  };
  // the units are rows: maps within one are not shared
  const inner = new VectorEmitter(code, outer.lanes, address);
  const row = (): void => {
    for (const [v, local] of outer.vars) inner.vars.set(v, local);
    inner.scope(() => emitMap(inner, tiles.keys, tiles.operands));
    for (const offset of [layout.pairs, layout.room, layout.counts, layout.high]) {
      code
        .get(w)
        .i32Const(4 * offset)
        .op(OP.i32Add);
    }
    if (nest.keys.length > 1)
      code
        .get(w)
        .i32Const(4 * layout.low)
        .op(OP.i32Add);
    else code.i32Const(0);
    code.i32Const(nest.along.extent);
    if (layout.capacity === null) code.call(functions.row);
    else code.i32Const(nest.rank.extent).i32Const(layout.capacity).call(functions.select);
    inner.scope(() => emitMap(inner, tiles.stores, tiles.operands));
  };
  return emitUnits(outer, live(nest.loops), row);
}
