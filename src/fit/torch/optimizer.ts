/**
 * @file Optimizers of torch.optim in their default form for CUDA (`foreach`): all parameters at once. State is made in the first step, and
 * Adam's update has one temporary list as large as all gradients, the root of the second moments. (torch/optim/adam.py, sgd.py.)
 */
import type { Autograd, EagerTensor, Parameter } from "./autograd.ts";

export const OPTIMIZERS = ["sgd", "adam", "adamw"] as const;
export type OptimizerName = (typeof OPTIMIZERS)[number];

/** Tensors of state for each parameter, and temporary ones in an update. */
const FORMS: Readonly<Record<OptimizerName, { readonly states: number; readonly temporaries: number }>> = {
  sgd: { states: 0, temporaries: 0 },
  adam: { states: 2, temporaries: 1 },
  adamw: { states: 2, temporaries: 1 },
};

export class Optimizer {
  readonly #form: { readonly states: number; readonly temporaries: number };
  readonly #g: Autograd;
  readonly #states = new Map<Parameter, readonly EagerTensor[]>();

  constructor(g: Autograd, name: OptimizerName) {
    this.#g = g;
    this.#form = FORMS[name];
  }

  step(parameters: readonly Parameter[]): void {
    const g = this.#g;
    g.memory.at = "the optimizer's update";
    const active = parameters.filter(({ gradient }) => gradient);
    const make = ({ tensor }: Parameter): EagerTensor => g.fresh(tensor.shape, tensor, tensor.strides);
    g.purpose = "optimizer state";
    for (const parameter of active) {
      if (this.#states.has(parameter)) continue;
      this.#states.set(
        parameter,
        Array.from({ length: this.#form.states }, () => make(parameter)),
      );
    }
    g.purpose = "temporaries";
    const temporaries = Array.from({ length: this.#form.temporaries }, () => active.map(make)).flat();
    for (const one of temporaries) g.release(one);
    g.purpose = "activations";
  }

  /** `zero_grad(set_to_none=True)`. */
  clear(parameters: readonly Parameter[]): void {
    for (const parameter of parameters) {
      if (parameter.gradient) this.#g.release(parameter.gradient);
      parameter.gradient = null;
    }
  }
}
