/**
 * @file Threads of a WebAssembly program. Every worker has an instance of the same module on the same memory. The thread
 * that calls `run` goes through the program alone; at a large call it publishes the call and all threads take pieces
 * of it, the caller too:
 *
 *   caller   small small │ piece 0 │ piece 1 │ piece 3 │ small …
 *   worker     (asleep)  │ ········· piece 2 │ ······················  (asleep)
 *
 * A call is over when its pieces are done, on any thread. A worker that is late, has not started yet or lost its core to
 * another process is not waited for unless it holds a piece; numbers in the arena that decide how the program goes on are
 * read by the caller alone. A thread polls a word for some microseconds at most before it sleeps.
 *
 *   claim     number of the call << 32 | pieces taken, a bit each; bits of pieces that do not exist are set from the start
 *   done      how many pieces are finished: the caller waits for this
 *   call      number of the last call: workers wait for this
 *   program   number of the program that runs: several may run one after the other in one memory, with the same words
 *
 * Invariants. What a call is (function, units, arguments) is written only while every bit of `claim` is set, and read only
 * by who has set one: taking a piece of a call that is over fails, since the number in `claim` has changed. `program` is
 * written only between calls: where it is a worker's own while `claim` has a free bit, the call is one of its program, and
 * taking the piece fails if either has changed since.
 *
 *   the memory   ├ words │ arguments ┼──── the arena, which may grow ────┤
 *                0                   teamBytes(threads)
 */
import { bytesOf } from "../../kernel/dtype.ts";
import type { Units } from "../units.ts";
import { Code, type ModuleBuilder, OP } from "./encoder.ts";

/** Words that threads share, in bytes from the team's start; those that are waited for have a cache line each. */
export const TEAM = {
  claim: 0,
  done: 64,
  call: 128,
  /** Workers asleep. */
  sleepers: 192,
  /** One of MODE. */
  mode: 256,
  /** Whether the caller is asleep. */
  waits: 320,
  /** Length of a message from a worker that failed, then its characters. */
  failed: 384,
  message: 388,
  /** Whether the caller may sleep: the page's own thread in a browser may not. */
  mayBlock: 640,
  /** Pieces that workers have done, ever: whether they are of any help. */
  helped: 644,
  fn: 704,
  units: 708,
  grain: 712,
  pieces: 716,
  program: 720,
  /** Of each thread: number of the last request to help that it has not done with, or 0. */
  present: 768,
} as const;

export const MESSAGE_BYTES = TEAM.mayBlock - TEAM.message;

/** Idle workers wait for a moment; during a run they wait; at the end they are told to return. */
export const MODE = { idle: 0, running: 1, leave: 2 } as const;

/** Looks at a word before sleeping: some microseconds. */
const LOOKS = 4000;
/** Nanoseconds after which a worker with nothing to do goes home, and the caller looks whether all workers live. */
const LINGER = 5_000_000;
const PATIENCE = 50_000_000;

const LINE = 64;
const toLine = (bytes: number): number => Math.ceil(bytes / LINE) * LINE;

/** Arguments of a call that can be shared. */
const MOST_ARGUMENTS = 512;

const argumentsStart = (threads: number): number => toLine(TEAM.present + bytesOf("i32") * threads);

/** Bytes of all words, after which the arena starts. */
export const teamBytes = (threads: number): number => argumentsStart(threads) + toLine(bytesOf("i32") * MOST_ARGUMENTS);

/** Writes what threads need into a module, and calls that they share. */
export class TeamEmitter {
  readonly #module: ModuleBuilder;
  readonly #threads: number;
  readonly #wrappers = new Map<number, number>();
  readonly #check: number;
  readonly #pieceType: number;
  /** Numbers of the functions that take a piece, compute one, and share a call. */
  readonly #take: number;
  readonly #piece: number;
  readonly #share: number;

  /** @param module without functions yet */
  constructor(module: ModuleBuilder, threads: number) {
    this.#module = module;
    this.#threads = threads;
    this.#check = module.importFunction("check");
    module.addTable();
    this.#pieceType = module.type(["i32", "i32", "i32"]);
    this.#take = this.#addTake();
    this.#piece = this.#addPiece();
    this.#share = this.#addShare();
    module.export("help", this.#addHelp());
  }

  /** Whether there is anything to share. */
  get isUsed(): boolean {
    return this.#wrappers.size > 0;
  }

  /** Whether a call with so many arguments can be shared. */
  takes(args: number): boolean {
    return args <= MOST_ARGUMENTS;
  }

  /** Shares a call of a nest's function. `pushArgument` leaves an address that the function takes on the stack. */
  call(code: Code, { fn, args, units, pieces }: SharedCall, pushArgument: (i: number) => void): void {
    for (let i = 0; i < args; i++) {
      code.i32Const(this.#argument(i));
      pushArgument(i);
      code.i32Store();
    }
    code.i32Const(this.#wrapper(fn, args)).i32Const(units.count).i32Const(units.grain).i32Const(pieces);
    code.call(this.#share);
  }

  #argument(i: number): number {
    return argumentsStart(this.#threads) + bytesOf("i32") * i;
  }

  /** (lo, hi, thread) → the function with its arguments from memory; its number in the table. */
  #wrapper(fn: number, args: number): number {
    const known = this.#wrappers.get(fn);
    if (known !== undefined) return known;
    const code = new Code(["i32", "i32", "i32"]);
    for (let i = 0; i < args; i++) code.i32Const(this.#argument(i)).i32Load();
    code.get(0).get(1).get(2).call(fn);
    const made = this.#module.tabulate(this.#module.add(code));
    this.#wrappers.set(fn, made);
    return made;
  }

  #at(code: Code, word: keyof typeof TEAM): Code {
    return code.i32Const(TEAM[word]);
  }

  #load(code: Code, word: keyof typeof TEAM): Code {
    return this.#at(code, word).atomic("i32_load");
  }

  /**
   * (thread, program) → a piece of the current call, by preference one near those it had before; −1 when all are taken, or
   * another program runs.
   */
  #addTake(): number {
    const code = new Code(["i32", "i32"], ["i32"]);
    const [claim, free, near, piece] = [code.local("i64"), code.local("i32"), code.local("i32"), code.local("i32")];
    code.while(
      () => {
        this.#at(code, "claim").atomic("i64_load").tee(claim).op(OP.i32WrapI64);
        code.i32Const(-1).op(OP.i32Xor).tee(free);
      },
      () => {
        this.#load(code, "program").get(1).op(OP.i32Ne);
        code.if(null, () => code.i32Const(-1).op(OP.return));
        code.get(free).i32Const(-1);
        this.#load(code, "pieces").get(0).op(OP.i32Mul).i32Const(this.#threads).op(OP.i32DivU);
        code.op(OP.i32Shl).op(OP.i32And).tee(near);
        code.if(
          "i32",
          () => code.get(near),
          () => code.get(free),
        );
        code.op(OP.i32Ctz).set(piece);
        this.#at(code, "claim").get(claim).get(claim);
        code.i64Const(1).get(piece).op(OP.i64ExtendI32U).op(OP.i64Shl).op(OP.i64Or).atomic("i64_cmpxchg");
        code.get(claim).op(OP.i64Ne).op(OP.i32Eqz);
        code.if(null, () => code.get(piece).op(OP.return));
      },
    );
    return this.#module.add(code.i32Const(-1));
  }

  /** (piece, thread): computes it and says so. */
  #addPiece(): number {
    const code = new Code(["i32", "i32"]);
    const [lo, hi] = [code.local("i32"), code.local("i32")];
    // grains · piece / pieces · grain, where the product may have more than 32 bits
    const bound = (piece: () => void): void => {
      this.#load(code, "units");
      this.#load(code, "grain").op(OP.i32Add).i32Const(1).op(OP.i32Sub);
      this.#load(code, "grain").op(OP.i32DivU).op(OP.i64ExtendI32U);
      piece();
      code.op(OP.i64ExtendI32U).op(OP.i64Mul);
      this.#load(code, "pieces").op(OP.i64ExtendI32U).op(OP.i64DivU).op(OP.i32WrapI64);
      this.#load(code, "grain").op(OP.i32Mul);
    };
    bound(() => code.get(0));
    code.set(lo);
    code.get(0).i32Const(1).op(OP.i32Add);
    this.#load(code, "pieces").op(OP.i32Eq);
    code.if(
      "i32",
      () => this.#load(code, "units"),
      () => bound(() => code.get(0).i32Const(1).op(OP.i32Add)),
    );
    code.set(hi);
    code.get(lo).get(hi).op(OP.i32LtU);
    code.if(null, () => {
      code.get(lo).get(hi).get(1);
      this.#load(code, "fn").callIndirect(this.#pieceType);
    });
    code.get(1).if(null, () => this.#at(code, "helped").i32Const(1).atomic("i32_add").op(OP.drop));
    this.#at(code, "done").i32Const(1).atomic("i32_add").op(OP.drop);
    this.#load(code, "waits").if(null, () => this.#at(code, "done").i32Const(1).atomic("notify").op(OP.drop));
    return this.#module.add(code);
  }

  /** Takes pieces of a program and computes them while there are any. */
  #work(code: Code, thread: () => void, program: () => void): void {
    const taken = code.local("i32");
    const next = (): void => {
      thread();
      program();
      code.call(this.#take).tee(taken).i32Const(0).op(OP.i32GeS);
    };
    code.while(next, () => {
      code.get(taken);
      thread();
      code.call(this.#piece);
    });
  }

  /** (function, units, grain, pieces): the caller's part of a call. */
  #addShare(): number {
    const code = new Code(["i32", "i32", "i32", "i32"]);
    const call = code.local("i32");
    (["fn", "units", "grain", "pieces"] as const).forEach((word, i) => {
      this.#at(code, word).get(i).i32Store();
    });
    this.#at(code, "done").i32Const(0).atomic("i32_store");
    this.#load(code, "call").i32Const(1).op(OP.i32Add).set(call);
    // claim = call << 32 | ~((1 << pieces) − 1), which for 32 pieces has no bit set
    this.#at(code, "claim");
    code.get(call).op(OP.i64ExtendI32U).i64Const(32).op(OP.i64Shl);
    code.i32Const(0).i64Const(1).get(3).op(OP.i64ExtendI32U).op(OP.i64Shl).op(OP.i32WrapI64).op(OP.i32Sub);
    code.op(OP.i64ExtendI32U).op(OP.i64Or).atomic("i64_store");
    this.#at(code, "call").get(call).atomic("i32_store");
    this.#load(code, "sleepers").if(null, () => this.#at(code, "call").i32Const(-1).atomic("notify").op(OP.drop));
    const [caller, own] = [() => code.i32Const(0), () => this.#load(code, "program")];
    this.#work(code, caller, own);
    this.#join(code, 3);
    return this.#module.add(code);
  }

  /** Waits until all pieces are done: looks for a moment, then sleeps where that is allowed. */
  #join(code: Code, pieces: number): void {
    const [done, looks] = [code.local("i32"), code.local("i32")];
    code.i32Const(0).set(looks);
    code.while(
      () => this.#load(code, "done").tee(done).get(pieces).op(OP.i32Ne),
      () => {
        code.get(looks).i32Const(LOOKS).op(OP.i32LtS);
        code.if(
          null,
          () => code.increment(looks, 1),
          () => {
            this.#load(code, "mayBlock").if(
              null,
              () => {
                this.#at(code, "waits").i32Const(1).atomic("i32_store");
                this.#at(code, "done").get(done).i64Const(PATIENCE).atomic("wait32").op(OP.drop);
                this.#at(code, "waits").i32Const(0).atomic("i32_store");
              },
              () => code.i32Const(0).set(looks),
            );
            code.call(this.#check);
          },
        );
      },
    );
  }

  /** (thread, program): a worker's part, until it is told to return, another program runs, or no call comes for a while. */
  #addHelp(): number {
    const code = new Code(["i32", "i32"]);
    const [call, looks, woken] = [code.local("i32"), code.local("i32"), code.local("i32")];
    const same = (): Code => this.#load(code, "call").get(call).op(OP.i32Eq);
    code.while(
      () => {
        this.#load(code, "mode").i32Const(MODE.leave).op(OP.i32Ne);
        this.#load(code, "program").get(1).op(OP.i32Eq).op(OP.i32And);
      },
      () => {
        this.#load(code, "call").set(call);
        const [worker, own] = [() => code.get(0), () => code.get(1)];
        this.#work(code, worker, own);
        code.i32Const(0).set(looks);
        code.while(
          () => same().get(looks).i32Const(LOOKS).op(OP.i32LtS).op(OP.i32And),
          () => code.increment(looks, 1),
        );
        same().if(null, () => {
          this.#at(code, "sleepers").i32Const(1).atomic("i32_add").op(OP.drop);
          this.#at(code, "call").get(call).i64Const(LINGER).atomic("wait32").set(woken);
          this.#at(code, "sleepers").i32Const(1).atomic("i32_sub").op(OP.drop);
          // 2: no call came
          code.get(woken).i32Const(2).op(OP.i32Eq);
          this.#load(code, "mode").i32Const(MODE.idle).op(OP.i32Eq).op(OP.i32And);
          code.if(null, () => code.op(OP.return));
        });
      },
    );
    return this.#module.add(code);
  }
}

/** A call, of a function with so many arguments, that threads share. */
export interface SharedCall {
  readonly fn: number;
  readonly args: number;
  readonly units: Units;
  readonly pieces: number;
}
