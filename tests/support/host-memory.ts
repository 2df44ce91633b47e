/** @file Memory of a device that tests look into: that of targets whose memory the host sees. */
import type { DeviceMemory } from "../../src/runtime/device.ts";
import { HostMemory } from "../../src/runtime/host-memory.ts";

export function hostMemory(memory: DeviceMemory): HostMemory {
  if (memory instanceof HostMemory) return memory;
  throw new Error("the host does not see this memory");
}
