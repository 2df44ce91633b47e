/**
 * @file Storage of tensors that live in an arena: parameters and optimizer state between steps. A resident
 * tensor's elements stay where the last run left them; it is never freed or moved by hand:
 *
 *   resident ──(read)──────────────→ a copy of its elements; of a device that has to be waited for, a promise of them
 *   resident ──(donated to a run)──→ consumed: its storage now holds the result that replaced it
 *   resident ──(slot needed for other data)──→ copied out to an array of its own, still readable
 */
import { TidemarkError } from "../base/errors.ts";
import { type Shape, type TensorType, typeText } from "../ir/type.ts";
import type { DType } from "../kernel/dtype.ts";
import { sourceLocation } from "../trace/source-location.ts";
import type { TensorStorage } from "../trace/storage.ts";
import { type Elements, notReadable } from "./executable.ts";

/** Whose memory it is in. */
interface Home {
  /** Whether elements can be read without waiting. */
  readonly readsAtOnce: boolean;
  read(type: TensorType, address: number): Elements;
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
    if (!this.#data) throw notReadable(this);
    return this.#data;
  }

  fetch(): Promise<Elements> {
    return this.#coming;
  }
}

type State =
  | { readonly kind: "resident"; readonly home: Home; readonly address: number }
  | { readonly kind: "moved"; readonly storage: TensorStorage }
  | { readonly kind: "consumed"; readonly by: string; readonly where: () => string | undefined };

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
    throw this.#consumed(state);
  }

  copy(): Elements {
    return this.#state.kind === "resident" && !this.#fetched ? this.read() : this.read().slice();
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
    throw this.#consumed(state);
  }

  /** Writes the elements of now into an array, also when they have been donated since. Throws at once where it cannot. */
  writer(): (into: Elements) => void {
    const state = this.#state;
    if (state.kind === "resident" && state.home.readsAtOnce)
      return (into) => state.home.readInto(this, state.address, into);
    const data = this.read();
    return (into) => into.set(data);
  }

  #consumed(state: Extract<State, { readonly kind: "consumed" }>): TidemarkError {
    const [type, donatedAt] = [typeText(this), state.where()];
    const taken = `${state.by}${donatedAt ? ` at ${donatedAt}` : ""}`;
    return new TidemarkError("DonatedTensor", `this ${type} was donated to ${taken} and its storage was reused`, {
      where: sourceLocation(),
      help: "use the tensor that the call returned in its place, or leave the argument out of `donate`",
    });
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

  /** Its storage is about to be taken over by what replaces it. */
  consume(by: string, where: () => string | undefined): void {
    if (this.#state.kind !== "resident") return;
    this.#state = { kind: "consumed", by, where };
    this.#fetched = null;
  }

  /** Its slot is needed for something else: keep the elements in an array. */
  moveOut(): void {
    const state = this.#state;
    if (state.kind === "resident") this.#state = { kind: "moved", storage: state.home.result(this, state.address) };
  }
}
