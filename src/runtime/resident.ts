/**
 * @file Storage of tensors that live in an arena: parameters and optimizer state between steps. A resident
 * tensor's elements stay where the last run left them; it is never freed or moved by hand:
 *
 *   resident ──(read)──────────────→ a copy of its elements; of a device that has to be waited for, a promise of them
 *   resident ──(donated to a run)──→ consumed: its storage now holds the result that replaced it
 *   resident ──(slot needed for other data)──→ copied out to an array of its own, still readable
 */
import type { Shape, TensorType } from "../ir/type.ts";
import type { DType } from "../kernel/dtype.ts";
import { type Donation, donatedTensor, type TensorStorage } from "../trace/storage.ts";
import { type Elements, notReadable } from "./executable.ts";

/** Whose memory it is in. */
interface Home {
  /** Whether elements can be read without waiting. */
  readonly readsAtOnce: boolean;
  read(type: TensorType, address: number): Elements;
  /** The elements themselves. */
  view(type: TensorType, address: number): Elements;
  readInto(type: TensorType, address: number, into: Elements): void;
  fetch(type: TensorType, address: number): Promise<Elements>;
  /** Of a result, in an array of its own. */
  result(type: TensorType, address: number): TensorStorage;
}

/** Elements on their way from a device. */
export class PendingStorage implements TensorStorage {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly #coming: Promise<Elements>;
  #data: Elements | null = null;
  #donation: Donation | null = null;

  constructor({ dtype, shape }: TensorType, coming: Promise<Elements>) {
    this.dtype = dtype;
    this.shape = shape;
    this.#coming = coming.then((data) => {
      this.#data = data;
      return data;
    });
    // What went wrong is said to those who wait for it.
    this.#coming.catch(() => undefined);
  }

  read(): Elements {
    if (this.#donation) throw donatedTensor(this, this.#donation);
    if (!this.#data) throw notReadable(this);
    return this.#data;
  }

  async fetch(): Promise<Elements> {
    if (this.#donation) throw donatedTensor(this, this.#donation);
    return this.#coming;
  }

  consume(to: Donation): void {
    this.#donation ??= to;
  }

  spare(): PendingStorage {
    return new PendingStorage(this, this.fetch());
  }
}

type State =
  | { readonly kind: "resident"; readonly home: Home; readonly address: number }
  | { readonly kind: "moved"; readonly storage: TensorStorage }
  | { readonly kind: "consumed"; readonly to: Donation };

export class ResidentStorage implements TensorStorage {
  readonly dtype: DType;
  readonly shape: Shape;
  #state: State;
  /** What was waited for; the elements of a tensor never change. */
  #fetched: Elements | null = null;

  constructor(type: TensorType, home: Home, address: number) {
    this.dtype = type.dtype;
    this.shape = type.shape;
    this.#state = { kind: "resident", home, address };
  }

  read(): Elements {
    const state = this.#state;
    if (this.#fetched) return this.#fetched;
    if (state.kind === "resident") return state.home.read(this, state.address);
    if (state.kind === "moved") return state.storage.read();
    throw donatedTensor(this, state.to);
  }

  copy(): Elements {
    return this.#state.kind === "resident" && !this.#fetched ? this.read() : this.read().slice();
  }

  borrow(): Elements {
    const state = this.#state;
    return state.kind === "resident" && state.home.readsAtOnce ? state.home.view(this, state.address) : this.read();
  }

  async fetch(): Promise<Elements> {
    const state = this.#state;
    if (this.#fetched) return this.#fetched;
    if (state.kind === "resident") {
      const data = await state.home.fetch(this, state.address);
      if (!state.home.readsAtOnce && this.#state.kind !== "consumed") this.#fetched = data;
      return data;
    }
    if (state.kind === "moved") return state.storage.fetch?.() ?? state.storage.read();
    throw donatedTensor(this, state.to);
  }

  /** Writes the elements of now into an array, also when they have been donated since. Throws at once where it cannot. */
  writer(): (into: Elements) => void {
    const state = this.#state;
    if (state.kind === "resident" && state.home.readsAtOnce)
      return (into) => state.home.readInto(this, state.address, into);
    const data = this.read();
    return (into) => into.set(data);
  }

  /** Where it lives; null when it was moved out or donated. */
  get place(): { readonly home: Home; readonly address: number } | null {
    return this.#state.kind === "resident" ? this.#state : null;
  }

  isIn(home: Home): boolean {
    return this.#state.kind === "resident" && this.#state.home === home;
  }

  isAt(home: Home, address: number): boolean {
    return this.#state.kind === "resident" && this.isIn(home) && this.#state.address === address;
  }

  get isConsumed(): boolean {
    return this.#state.kind === "consumed";
  }

  /** Its storage is about to be taken over by what replaces it. */
  consume(to: Donation): void {
    if (this.#state.kind === "consumed") return;
    this.#state = { kind: "consumed", to };
    this.#fetched = null;
  }

  spare(): TensorStorage {
    const state = this.#state;
    if (state.kind === "consumed") throw donatedTensor(this, state.to);
    if (state.kind === "resident") return state.home.result(this, state.address);
    return state.storage.spare?.() ?? state.storage;
  }

  /** Its slot is needed for something else: keep the elements in an array. */
  moveOut(): void {
    const state = this.#state;
    if (state.kind === "resident") this.#state = { kind: "moved", storage: state.home.result(this, state.address) };
  }
}
