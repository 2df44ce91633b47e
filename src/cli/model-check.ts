/**
 * @file An imported model beside what another framework recorded of it: outputs, loss, gradients. The loss is mean(output · weight) +
 * 0.1 · mean(output²) where a weight was recorded, otherwise mean(output²).
 *
 * Exporters of ONNX merge weights with equal values and name them after one of them; a recorded gradient is then that of one use. So models are
 * read with every use as a parameter of its own, and a recorded gradient is compared with that of each use and with their sum.
 */
import { compile } from "../api/compile.ts";
import * as t from "../api/functions.ts";
import { valueAndGrad } from "../api/grad.ts";
import { TidemarkError } from "../base/errors.ts";
import type { ImportedModel } from "../exchange/shared/model.ts";
import type { Tensor } from "../trace/tensor.ts";

export type Tensors = Readonly<Record<string, Tensor>>;

export interface GradientCheck {
  /** Largest difference over largest magnitude, of the tensor where it is worst. */
  readonly maxRel: number;
  readonly worst: string | null;
  /** Recorded, and not among the parameters of the model. */
  readonly missing: readonly string[];
  /** Zero up to rounding: below a millionth of the largest gradient in both, where relative errors say nothing. */
  readonly rounding: readonly string[];
  readonly compared: number;
}

export interface ModelCheck {
  readonly outputs: { readonly maxRel: number };
  readonly loss: number;
  readonly recordedLoss: number | null;
  readonly grads: GradientCheck | null;
  readonly arenaBytes: number;
}

/** The recorded inputs in the order of the model: `input`, `input.0`, …, or by the model's names. */
function recordedInputs(model: ImportedModel, io: Tensors): readonly Tensor[] {
  return model.inputs.map(({ name }, i) => {
    const found = [name, `input.${i}`, `input${i}`, ...(i === 0 ? ["input"] : [])].find((key) => io[key] !== undefined);
    if (found !== undefined) return io[found] as Tensor;
    throw new TidemarkError("InvalidFile", `the recorded tensors have no input ${name}`, {
      help: `name it ${name} or input.${i}; they are ${Object.keys(io).join(", ")}`,
    });
  });
}

function recordedOutput(model: ImportedModel, io: Tensors): Tensor {
  const found = io.output ?? io[model.outputs[0] ?? ""];
  if (found) return found;
  const help = `they are ${Object.keys(io).join(", ")}`;
  throw new TidemarkError("InvalidFile", "the recorded tensors have no output", { help });
}

const largest = (data: ArrayLike<number>): number => {
  let most = 0;
  for (let i = 0; i < data.length; i++) most = Math.max(most, Math.abs(data[i] as number));
  return most;
};

/** Largest difference over the largest magnitude of what was recorded. */
function relative(data: ArrayLike<number>, recorded: ArrayLike<number>): number {
  if (data.length !== recorded.length) return Number.POSITIVE_INFINITY;
  let difference = 0;
  for (let i = 0; i < data.length; i++) {
    const one = Math.abs((data[i] as number) - (recorded[i] as number));
    if (Number.isNaN(one)) return Number.POSITIVE_INFINITY;
    difference = Math.max(difference, one);
  }
  const scale = largest(recorded);
  return difference === 0 ? 0 : difference / scale;
}

export function checkModel(
  model: ImportedModel,
  io: Tensors,
  grads: Tensors | null,
  memory?: number | "min",
): ModelCheck {
  const inputs = recordedInputs(model, io);
  const recorded = recordedOutput(model, io);
  const weight = io.weight ?? t.zeros(recorded.shape, recorded.dtype);
  const scale = io.weight ? 0.1 : 1;
  const lossOf = (params: Tensors, given: readonly Tensor[], w: Tensor): readonly [Tensor, Tensor] => {
    const y = model.apply(params, given)[model.outputs[0] as string] as Tensor;
    return [t.add(t.mean(t.mul(y, w)), t.mul(t.mean(t.square(y)), scale)), y];
  };
  const step = compile(
    (params: Tensors, given: readonly Tensor[], w: Tensor) => valueAndGrad(lossOf, { hasAux: true })(params, given, w),
    memory === undefined ? {} : { memory },
  );
  const [[loss, output], gradients] = step(model.params, inputs, weight);
  return {
    outputs: { maxRel: relative(output.data(), recorded.data()) },
    loss: loss.item(),
    recordedLoss: io.loss ? io.loss.item() : null,
    grads: grads ? checkGradients(gradients as Tensors, grads) : null,
    arenaBytes: step.usage().arenaBytes,
  };
}

/** A gradient below this part of the largest one is rounding. */
const ROUNDING = 2 ** -20;

function checkGradients(gradients: Tensors, recorded: Tensors): GradientCheck {
  const top = Math.max(0, ...Object.values(recorded).map((tensor) => largest(tensor.data())));
  const missing: string[] = [];
  const rounding: string[] = [];
  let [maxRel, worst, compared] = [0, null as string | null, 0];
  for (const [name, tensor] of Object.entries(recorded)) {
    const candidates = usesOf(gradients, name);
    if (candidates.length === 0) {
      missing.push(name);
      continue;
    }
    const wanted = tensor.data();
    const error = Math.min(...candidates.map((data) => relative(data, wanted)));
    const isRounding = Math.max(largest(wanted), Math.min(...candidates.map(largest))) < ROUNDING * top;
    compared++;
    if (isRounding && error > 1e-4) rounding.push(name);
    else if (error >= maxRel) [maxRel, worst] = [error, name];
  }
  return { maxRel, worst, missing, rounding, compared };
}

/** Gradients of every use of a parameter, and their sum. */
function usesOf(gradients: Tensors, name: string): readonly ArrayLike<number>[] {
  const uses: ArrayLike<number>[] = [];
  for (let i = 1; ; i++) {
    const one = gradients[i === 1 ? name : `${name}#${i}`];
    if (!one) break;
    uses.push(one.data());
  }
  if (uses.length < 2) return uses;
  const sum = Float64Array.from(uses[0] as ArrayLike<number>);
  for (const use of uses.slice(1))
    for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] as number) + (use[i] as number);
  return [...uses, sum];
}
