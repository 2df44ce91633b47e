/**
 * @file The devices that one process has, each a thread with its own memories: how a thread is started from a module of the user's, what
 * the two say to each other, and, in such a thread, who connects it with the others (parallel/run-devices.ts). How threads are started is part
 * of the host: pages have workers, `tidemark/node` has Node's.
 */
import type { Communicator } from "./communicator.ts";

/** A thread that runs a module. */
export interface ModuleThread {
  post(message: unknown): void;
  onMessage(handler: (message: unknown) => void): void;
  /** It failed to start, threw outside of everything, or is gone, where that can be known. */
  onEnd(handler: (why: string) => void): void;
  /** Ends it at once, whatever it does. */
  end(): void;
}

/** The thread that started this one. */
export interface ParentThread {
  post(message: unknown): void;
  onMessage(handler: (message: unknown) => void): void;
}

/** Threads of a host. */
export interface ModuleThreads {
  /** Starts a module by its address; or says why not. */
  start(module: string): ModuleThread | string;
  /** Null where no thread started this one. */
  parent(): ParentThread | null;
  /** Why threads share no memory here, or null. */
  notShared(): string | null;
  /** Holds something as long as this thread lives, and then calls back; null where ends are known by themselves. */
  readonly life: LifeSigns | null;
}

/** How one thread knows that another is gone where nothing says so: by a lock that the other one held. */
export interface LifeSigns {
  /** Called by the thread that may end: done when the lock is its own. */
  hold(name: string): Promise<void>;
  /** Done when who held it is gone. */
  gone(name: string): Promise<void>;
}

/** In a thread: the other devices. */
export class Devices {
  readonly #find: () => ModuleThreads;
  readonly #processes: (asked: string) => Communicator | null;
  #joined: Communicator | null = null;
  #isClaimed = false;

  /** `find` is called when threads are first asked for; `processes` connects this process with others, where it is one of several. */
  constructor(find: () => ModuleThreads, processes: (asked: string) => Communicator | null = () => null) {
    this.#find = find;
    this.#processes = processes;
  }

  get threads(): ModuleThreads {
    return this.#find();
  }

  /** This thread is to be a device; false where it is one already. */
  claim(): boolean {
    const isFirst = !this.#isClaimed;
    this.#isClaimed = true;
    return isFirst;
  }

  /** From now on this thread is one of several. */
  join(communicator: Communicator): void {
    this.#joined = communicator;
  }

  /** Null where this thread is alone. `asked`: what for, in messages. */
  communicator(asked: string): Communicator | null {
    return this.#joined ?? this.#processes(asked);
  }
}
