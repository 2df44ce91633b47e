/**
 * @file What each device does that tests/devices.test.ts starts in Node's worker threads: bundled to JavaScript, and given the name of a part.
 */
import { currentHost, installPart } from "../../src/api/host.ts";
import { nodeHost } from "../../src/node/host.ts";
import { type Device, onDevice } from "../../src/parallel/index.ts";
import { wasmTarget } from "../../src/runtime/wasm-target.ts";
import { collectives } from "../mpi/collectives.ts";
import { experts } from "../mpi/experts.ts";
import { failures } from "./failures.ts";
import { programs } from "./programs.ts";
import { training } from "./training.ts";

installPart("host", nodeHost);

export interface Input {
  readonly part: string;
  readonly given?: unknown;
}

const targetOf = (threads: number) => {
  const { workers, devices } = currentHost();
  return wasmTarget(undefined, { threads, workers, devices, shareFrom: 0 });
};

const PARTS: Readonly<Record<string, (device: Device<Input>) => unknown>> = {
  collectives: (device) => collectives(device, targetOf),
  experts: (device) => experts(device, targetOf(1), [{}, { capacity: 6 }]),
  ...programs,
  ...training,
  ...failures,
};

onDevice<Input>((device) => {
  const part = PARTS[device.input.part];
  if (!part) throw new Error(`there is no part ${device.input.part}: ${Object.keys(PARTS).join(", ")}`);
  return part(device);
});
