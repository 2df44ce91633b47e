/**
 * @file Storage of tensors that live in an arena: parameters and optimizer state between steps. A resident
 * tensor's elements stay where the last run left them; nobody has to free or move anything:
 *
 *   resident ──(read)──────────────→ a view of the arena, no copy
 *   resident ──(donated to a run)──→ consumed: its storage now holds the result that replaced it
 *   resident ──(slot needed for other data)──→ copied out to an array of its own, still readable
 */
import { TidemarkError } from "../base/errors.ts";
import { type Shape, type TensorType, typeText } from "../ir/type.ts";
import type { DType } from "../kernel/dtype.ts";
import { sourceLocation } from "../trace/source-location.ts";
import type { Elements } from "./executable.ts";

/** Whose memory it is in. */
interface Home {
  view(type: TensorType, address: number): Elements;
}

type State =
  | { readonly kind: "resident"; readonly home: Home; readonly address: number }
  | { readonly kind: "array"; readonly data: Elements }
  | { readonly kind: "consumed"; readonly by: string; readonly where: () => string | undefined };

export class ResidentStorage {
  readonly dtype: DType;
  readonly shape: Shape;
  #state: State;

  constructor(type: TensorType, home: Home, address: number) {
    this.dtype = type.dtype;
    this.shape = type.shape;
    this.#state = { kind: "resident", home, address };
  }

  read(): Elements {
    const state = this.#state;
    if (state.kind === "resident") return state.home.view(this, state.address);
    if (state.kind === "array") return state.data;
    const [type, donatedAt] = [typeText(this), state.where()];
    const taken = `${state.by}${donatedAt ? ` at ${donatedAt}` : ""}`;
    throw new TidemarkError("DonatedTensor", `this ${type} was donated to ${taken} and its storage was reused`, {
      where: sourceLocation(),
      help: "use the tensor that the call returned in its place, or leave the argument out of `donate`",
    });
  }

  isIn(home: Home): boolean {
    return this.#state.kind === "resident" && this.#state.home === home;
  }

  isAt(home: Home, address: number): boolean {
    return this.#state.kind === "resident" && this.isIn(home) && this.#state.address === address;
  }

  /** Its storage is about to be taken over by what replaces it. */
  consume(by: string, where: () => string | undefined): void {
    if (this.#state.kind === "resident") this.#state = { kind: "consumed", by, where };
  }

  /** Its slot is needed for something else: keep the elements in an array. */
  moveOut(): void {
    if (this.#state.kind === "resident") this.#state = { kind: "array", data: this.read().slice() };
  }
}
