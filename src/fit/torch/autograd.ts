/**
 * @file PyTorch's autograd as far as memory sees it. A forward operation leaves a node with the storages that its derivative reads. The
 * backward pass runs the nodes that have all of their gradients, the latest first, gives back what a node saved and the gradients it read as soon as it has
 * run, and adds a second gradient of a value into the first where nothing else holds that. (torch/csrc/autograd: engine.cpp, input_buffer.cpp,
 * accumulate_grad.h.)
 */
import { contiguousStrides, elementsOf, isDense, type Shape, sameStrides } from "./layout.ts";
import { DeviceMemory, type Purpose, type Storage } from "./memory.ts";

/** A tensor of the modelled program; it holds one reference to its storage. */
export interface EagerTensor {
  readonly storage: Storage;
  readonly shape: Shape;
  readonly strides: readonly number[];
  /** Bytes of one element. */
  readonly item: number;
  readonly isFloat: boolean;
  /** Where its gradient goes; null where it needs none. */
  edge: Edge | null;
}

export interface Edge {
  readonly node: GradNode;
  readonly index: number;
}

type Gradients = readonly (EagerTensor | null)[];

export interface GradNode {
  readonly name: string;
  /** Nodes run the latest first; those of parameters before all others. */
  readonly sequence: number;
  readonly next: readonly (Edge | null)[];
  readonly outputs: number;
  saved: readonly Storage[];
  /** Gradients of the inputs from those of the outputs, which stay the caller's. Not called for parameters. */
  readonly backward: (gradients: Gradients) => Gradients;
  readonly parameter: Parameter | null;
  /** The part of the forward pass that is recomputed before this node runs. */
  readonly recomputed: RecomputedPart | null;
}

/** A part of the forward pass under `torch.utils.checkpoint`: its nodes keep nothing until the first of them runs. */
export interface RecomputedPart {
  readonly nodes: GradNode[];
  /** Runs the part again. */
  again: () => void;
  /** Gives back what the part keeps itself: its inputs and saved results. */
  end: () => void;
  isDone: boolean;
  /** Nodes that have not run yet. */
  left: number;
}

/** A leaf whose gradient is kept. */
export interface Parameter {
  readonly tensor: EagerTensor;
  gradient: EagerTensor | null;
}

/** What a derivative is told to have. */
export interface Recorded {
  readonly name: string;
  /** Of the operands that can have gradients, in the order of what `backward` returns. */
  readonly inputs: readonly (EagerTensor | null)[];
  readonly outputs: readonly EagerTensor[];
  readonly saved?: readonly (EagerTensor | null)[];
  readonly backward: (gradients: Gradients) => Gradients;
}

export class Autograd {
  readonly memory = new DeviceMemory();
  #sequence = 0;
  /** The part that is being recorded for the first time, and the one that runs again, with the node it is at. */
  #first: RecomputedPart | null = null;
  #again: { readonly part: RecomputedPart; at: number } | null = null;
  /** What new storages are for. */
  purpose: Purpose = "activations";

  fresh(shape: Shape, like: Pick<EagerTensor, "item" | "isFloat">, strides = contiguousStrides(shape)): EagerTensor {
    const storage = this.memory.allocate(elementsOf(shape) * like.item, this.purpose);
    return { storage, shape, strides, item: like.item, isFloat: like.isFloat, edge: null };
  }

  /** Another tensor of the same storage; the gradient's way is not taken over. */
  view(of: EagerTensor, shape: Shape = of.shape, strides: readonly number[] = of.strides): EagerTensor {
    return { ...of, storage: this.memory.retain(of.storage), shape, strides, edge: null };
  }

  release(tensor: EagerTensor): void {
    this.memory.release(tensor.storage);
  }

  needsGradient(tensor: EagerTensor | null): tensor is EagerTensor {
    return tensor?.edge != null;
  }

  /** Makes outputs differentiable, where an input is. */
  record({ name, inputs, outputs, saved = [], backward }: Recorded): void {
    if (!inputs.some((input) => this.needsGradient(input))) return;
    if (this.#again) {
      this.#recordAgain(outputs, saved);
      return;
    }
    const kept = this.#kept(saved);
    const next = inputs.map((input) => input?.edge ?? null);
    const node: GradNode = {
      ...{ name, next, backward, outputs: outputs.length },
      ...{ saved: kept, sequence: this.#sequence++, parameter: null, recomputed: this.#first },
    };
    this.#first?.nodes.push(node);
    outputs.forEach((output, index) => {
      if (output.isFloat) output.edge = { node, index };
    });
  }

  /** In a part that is recomputed only what its saved operations made is kept. */
  #kept(saved: readonly (EagerTensor | null)[]): readonly Storage[] {
    const { made } = this.memory;
    return saved.flatMap((tensor) => {
      if (!tensor || (this.#first && !made?.has(tensor.storage))) return [];
      return [this.memory.retain(tensor.storage)];
    });
  }

  /** The node of the first time gets what it has to read. */
  #recordAgain(outputs: readonly EagerTensor[], saved: readonly (EagerTensor | null)[]): void {
    const again = this.#again as { readonly part: RecomputedPart; at: number };
    const node = again.part.nodes[again.at++];
    if (!node) return;
    const { isSkipping } = this.memory;
    const read = saved.flatMap((tensor) => (tensor && !(isSkipping && !tensor.storage.block) ? [tensor.storage] : []));
    node.saved = [...node.saved, ...read.map((storage) => this.memory.retain(storage))];
    outputs.forEach((output, index) => {
      if (output.isFloat) output.edge = { node, index };
    });
  }

  /** Records a part of the forward pass that is recomputed in the backward pass. */
  recomputing<T>(part: RecomputedPart, forward: () => T): T {
    this.#first = part;
    const made = forward();
    this.#first = null;
    part.left = part.nodes.length;
    return made;
  }

  #runAgain(part: RecomputedPart): void {
    part.isDone = true;
    this.#again = { part, at: 0 };
    part.again();
    this.#again = null;
  }

  parameter(tensor: EagerTensor): Parameter {
    const parameter: Parameter = { tensor, gradient: null };
    const node: GradNode = {
      ...{ name: "AccumulateGrad", next: [], outputs: 1, saved: [], parameter, recomputed: null },
      sequence: Number.POSITIVE_INFINITY,
      backward: () => [],
    };
    tensor.edge = { node, index: 0 };
    return parameter;
  }

  /** The backward pass from a scalar. */
  backward(loss: EagerTensor): void {
    const root = loss.edge?.node;
    if (!root) return;
    const before = this.purpose;
    this.purpose = "temporaries";
    const waiting = dependencies(root);
    const buffers = new Map<GradNode, (EagerTensor | null)[]>();
    buffers.set(root, [this.fresh(loss.shape, loss)]);
    const ready = [root];
    for (let node = takeLatest(ready); node; node = takeLatest(ready)) {
      const gradients = buffers.get(node) ?? [];
      buffers.delete(node);
      this.memory.at = `backward of ${node.name}`;
      const made = node.parameter ? this.#accumulate(node.parameter, gradients) : this.#run(node, gradients);
      node.next.forEach((edge, i) => {
        const gradient = made[i] ?? null;
        if (!edge) {
          if (gradient) this.release(gradient);
          return;
        }
        if (gradient) this.#add(buffers, edge, gradient);
        const left = (waiting.get(edge.node) ?? 1) - 1;
        waiting.set(edge.node, left);
        if (left === 0) ready.push(edge.node);
      });
    }
    this.purpose = before;
  }

  #run(node: GradNode, gradients: Gradients): Gradients {
    const { recomputed } = node;
    if (recomputed && !recomputed.isDone) this.#runAgain(recomputed);
    const made = gradients.some((gradient) => gradient) ? node.backward(gradients) : [];
    for (const gradient of gradients) if (gradient) this.release(gradient);
    for (const storage of node.saved) this.memory.release(storage);
    node.saved = [];
    if (recomputed) {
      recomputed.left -= 1;
      if (recomputed.left === 0) recomputed.end();
    }
    return made;
  }

  /** Adds a gradient to what a value has, into the first where only the buffer holds it. */
  #add(buffers: Map<GradNode, (EagerTensor | null)[]>, { node, index }: Edge, gradient: EagerTensor): void {
    const buffer = buffers.get(node) ?? new Array<EagerTensor | null>(node.outputs).fill(null);
    buffers.set(node, buffer);
    const old = buffer[index] ?? null;
    if (!old) {
      buffer[index] = gradient;
      return;
    }
    if (old.storage.references === 1 && isDense(old.shape, old.strides)) {
      this.release(gradient);
      return;
    }
    buffer[index] = this.fresh(old.shape, old);
    this.release(old);
    this.release(gradient);
  }

  /** The first gradient of a parameter is taken as it is where its strides are those of the parameter; further ones are added to it. */
  #accumulate(parameter: Parameter, [gradient]: Gradients): Gradients {
    if (!gradient) return [];
    const { tensor } = parameter;
    if (parameter.gradient) {
      this.release(gradient);
      return [];
    }
    if (sameStrides(tensor.shape, gradient.strides, tensor.strides)) parameter.gradient = gradient;
    else {
      parameter.gradient = this.fresh(tensor.shape, tensor, tensor.strides);
      this.release(gradient);
    }
    this.memory.become(parameter.gradient.storage, "gradients");
    return [];
  }
}

/** For each node, how many others give it gradients. */
function dependencies(root: GradNode): Map<GradNode, number> {
  const counts = new Map<GradNode, number>();
  const seen = new Set([root]);
  const stack = [root];
  for (let node = stack.pop(); node; node = stack.pop()) {
    for (const edge of node.next) {
      if (!edge) continue;
      counts.set(edge.node, (counts.get(edge.node) ?? 0) + 1);
      if (seen.has(edge.node)) continue;
      seen.add(edge.node);
      stack.push(edge.node);
    }
  }
  return counts;
}

function takeLatest(ready: GradNode[]): GradNode | undefined {
  let best = 0;
  ready.forEach((node, i) => {
    if (node.sequence > (ready[best] as GradNode).sequence) best = i;
  });
  return ready.splice(best, 1)[0];
}
