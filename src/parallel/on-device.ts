/** @file The part of a program that every device runs, in a module that `runDevices` starts once for each (run-devices.ts). */
import { currentHost } from "../api/host.ts";
import { TidemarkError } from "../base/errors.ts";
import type { ModuleThreads, ParentThread } from "../runtime/devices.ts";
import { describe, fail, requireFunction } from "../trace/arguments.ts";
import { lineOf } from "../trace/source-location.ts";
import { type DeviceStart, isStart, lifeName, marked, type SentFailure, type Told } from "./device-messages.ts";
import { announceFailure, Mailbox } from "./mailbox.ts";
import { requirePlain } from "./plain-data.ts";
import { WorkerCommunicator } from "./worker-exchange.ts";

/** What a device is among others. */
export interface Device<I = unknown> {
  /** Its number, from 0; its place in a mesh of `size` devices. */
  readonly rank: number;
  /** The number of devices. */
  readonly size: number;
  /** What `runDevices` was given, a copy for each. */
  readonly input: I;
  /** Bytes in which it leaves what others read: in no plan, the same for every program. */
  readonly outsidePlanBytes: number;
  /** Sends something to the `onMessage` of `runDevices`. */
  tell(message: unknown): void;
}

const EXAMPLE = "onDevice(({ rank, size }) => …), in a module that runDevices(new URL(…), { devices: 4 }) starts";

/**
 * What every device does, in a module that {@link runDevices} starts once for each. Programs on a mesh that are compiled for `wasm` there
 * run together with those of the other devices, which have to run the same ones in the same order. The result, which may be a promise of plain
 * data, is this device's part of the result of `runDevices`. In Node, import `tidemark/node` in the module.
 *
 * @throws TargetUnsupported in a thread that runDevices did not start; InvalidArgument for what is no function,
 * and for a second call in one module
 *
 * @memory Each device has an arena and a plan of its own, and `outsidePlanBytes` for what others read.
 *
 * @example
 * // run, throws TargetUnsupported
 * // it is for a module that runDevices starts
 * import { compile, type Tensor, tensor } from "tidemark";
 * import { allReduce, mesh, onDevice, shard } from "tidemark/parallel";
 *
 * onDevice(({ rank, size }) => {
 *   const sum = (x: Tensor) => allReduce(x, { over: "data" });
 *   const total = compile(shard(sum, { mesh: mesh({ data: size }), in: ["data"], out: [] }));
 *   return total(tensor([rank])).toArray();
 * });
 */
export function onDevice<I = unknown, R = unknown>(run: (device: Device<I>) => R | Promise<R>): void {
  requireFunction("onDevice", "its argument", run, EXAMPLE);
  const { devices } = currentHost();
  const { threads } = devices;
  const parent = threads.parent();
  if (!parent) {
    fail(
      "TargetUnsupported",
      "onDevice: no thread started this one",
      `call ${EXAMPLE}; in Node import "tidemark/node"`,
    );
  }
  if (!devices.claim())
    fail("InvalidArgument", "onDevice: it was called before in this thread", "call it once in a module");
  let isStarted = false;
  parent.onMessage((message) => {
    if (isStarted || !isStart(message)) return;
    isStarted = true;
    const mail = new Mailbox(message.block, message.rank, message.size);
    const communicator = new WorkerCommunicator(mail);
    devices.join(communicator);
    void runOne(message, { threads, parent, mail, communicator }, run as (device: Device) => unknown);
  });
}

interface Parts {
  readonly threads: ModuleThreads;
  readonly parent: ParentThread;
  readonly mail: Mailbox;
  readonly communicator: WorkerCommunicator;
}

/** Runs the user's function, and says how it ended. Never rejects. */
async function runOne(start: DeviceStart, parts: Parts, run: (device: Device) => unknown): Promise<void> {
  const { rank, size, block, input } = start;
  const { threads, parent, mail, communicator } = parts;
  const post = (message: Told): void => parent.post(marked(message));
  try {
    if (threads.life) await threads.life.hold(lifeName(start.run, rank));
    post({ told: "alive" });
    const tell = (message: unknown): void => {
      requirePlain("tell", "the message", message);
      post({ told: "message", message });
    };
    const result = await run({ rank, size, input, outsidePlanBytes: block.byteLength / size, tell });
    requirePlain("onDevice", "the result", result);
    post({ told: "done", result });
    mail.leave();
  } catch (thrown) {
    const error = failureOf(thrown);
    const text = `rank ${rank} of ${size} failed: ${thrown instanceof TidemarkError ? thrown.summary : error.message}`;
    const isFirst = announceFailure(block, { rank, text }, size);
    post({ told: "failed", error, state: communicator.state, follows: !isFirst });
  }
}

/** Errors of other realms too, of which the class is another one. */
const isError = (thrown: unknown): thrown is Error =>
  thrown instanceof Error || Object.prototype.toString.call(thrown) === "[object Error]";

/** What was thrown, as data. */
function failureOf(thrown: unknown): SentFailure {
  if (!isError(thrown)) return { message: `${describe(thrown)} was thrown`, where: undefined, cause: undefined };
  // a TidemarkError says where it is
  if (thrown instanceof TidemarkError) return { message: thrown.message, where: undefined, cause: thrown };
  return { message: `${thrown.name}: ${thrown.message}`, where: lineOf(thrown), cause: thrown };
}
