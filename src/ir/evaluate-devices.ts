/**
 * @file Tests only. The reference meaning of a program on all devices of a mesh at once. Every device is evaluated on its own, as far as the next
 * collective that it meets, which may be inside of loops and branches; where all devices of a group have come to theirs, they exchange,
 * and go on. A device goes on by starting again: what its nodes gave is on a list, so that nothing is computed twice.
 */
import { TidemarkError } from "../base/errors.ts";
import { at, InternalError } from "../base/invariant.ts";
import { groupRanks, groupText } from "../kernel/device-group.ts";
import { applied, type EvaluateOptions, evaluateWith } from "./evaluate.ts";
import type { CollectiveFact } from "./facts.ts";
import type { Graph, Node } from "./graph.ts";
import type { Attrs, Reference } from "./op.ts";

/** Unwinds the evaluation of a device to its start; never leaves this file. */
class Waiting extends InternalError {}

interface Meeting {
  readonly node: Node;
  readonly fact: CollectiveFact<Attrs>;
  readonly inputs: readonly Reference[];
}

class Device {
  /** What nodes without regions gave, in the order in which they ran. */
  readonly #done: (readonly Reference[])[] = [];
  #next = 0;
  meeting: Meeting | null = null;
  results: readonly Reference[] | null = null;

  /** Up to the next meeting, or to the end. */
  run(graph: Graph, inputs: readonly Reference[], options: EvaluateOptions): void {
    this.#next = 0;
    const apply = (node: Node, own: readonly Reference[]): readonly Reference[] => {
      if (node.regions.length > 0)
        return applied(node, own, (region, given) => evaluateWith(apply, region, given, options));
      const known = this.#done[this.#next];
      this.#next += 1;
      if (known) return known;
      const fact = node.op.facts?.collective;
      if (fact && fact.what !== "mark") {
        this.meeting = { node, fact, inputs: own };
        throw new Waiting(node.op.name);
      }
      const made = applied(node, own, () => []);
      this.#done.push(made);
      return made;
    };
    try {
      this.results = evaluateWith(apply, graph, inputs, options);
    } catch (error) {
      if (!(error instanceof Waiting)) throw error;
    }
  }

  /** Goes on with what the meeting gave. */
  leave(made: Reference): void {
    this.#done.push([made]);
    this.meeting = null;
  }
}

/** Lets all groups exchange that have met; the devices that can go on. */
function exchange(devices: readonly Device[]): readonly Device[] {
  const left: Device[] = [];
  devices.forEach(({ meeting }, rank) => {
    if (!meeting) return;
    const { node, fact } = meeting;
    const group = groupRanks(fact.group(node.attrs), rank).map((r) => at(devices, r));
    if (group[0] !== devices[rank] || !group.every((other) => other.meeting?.node === node)) return;
    const operands = meeting.inputs.map((_, i) => group.map((other) => at(other.meeting?.inputs ?? [], i)));
    const made = fact.exchanged(operands, node.attrs);
    group.forEach((other, i) => {
      other.leave(at(made, i));
      left.push(other);
    });
  });
  return left;
}

/** Runs a graph on every device of a mesh, by rank; all together, so that they can exchange what they have. */
export function evaluateDevices(
  graph: Graph,
  inputs: readonly (readonly Reference[])[],
  options: EvaluateOptions = {},
): readonly (readonly Reference[])[] {
  const devices = inputs.map(() => new Device());
  let running: readonly Device[] = devices;
  while (running.length > 0) {
    for (const device of running) device.run(graph, at(inputs, devices.indexOf(device)), options);
    running = exchange(devices);
  }
  return devices.map(({ results, meeting }) => {
    if (results) return results;
    throw new TidemarkError("VarianceMismatch", `devices wait for each other for ever:\n  ${waitingText(devices)}`, {
      where: meeting?.node.where,
      help: "all devices of a group must come to the same collectives in the same order",
    });
  });
}

const waitingText = (devices: readonly Device[]): string =>
  devices
    .map(({ meeting }, rank) =>
      meeting
        ? `rank ${rank} at ${meeting.node.op.name} over ${groupText(meeting.fact.group(meeting.node.attrs))}`
        : `rank ${rank} has ended`,
    )
    .join("\n  ");
