/**
 * @file WebGPU for a program that expects a browser's: `node --import bench/webgpu-preload.mjs PROGRAM` gives it `navigator.gpu` from the
 * package `webgpu` (WEBGPU_PACKAGE names its file where it is not installed), and says at the end how many bytes of buffers there were at
 * once: `BUFFERS {"peakBytes":…}`.
 */
const { create, globals } = await import(process.env.WEBGPU_PACKAGE ?? "webgpu");
Object.assign(globalThis, globals);
const gpu = create([]);

let live = 0;
let peakBytes = 0;

/** Counts what the buffers of a device hold until they are destroyed. */
function counted(device) {
  const own = device.createBuffer.bind(device);
  device.createBuffer = (what) => {
    const buffer = own(what);
    live += what.size;
    peakBytes = Math.max(peakBytes, live);
    const destroy = buffer.destroy.bind(buffer);
    let isThere = true;
    buffer.destroy = () => {
      if (isThere) live -= what.size;
      isThere = false;
      destroy();
    };
    return buffer;
  };
  return device;
}

const ask = gpu.requestAdapter.bind(gpu);
gpu.requestAdapter = async (options) => {
  const adapter = await ask(options);
  const open = adapter?.requestDevice.bind(adapter);
  if (adapter) adapter.requestDevice = async (what) => counted(await open(what));
  return adapter;
};

const navigator = { gpu, userAgent: "", hardwareConcurrency: 1 };
Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true });
process.on("exit", () => console.log(`BUFFERS ${JSON.stringify({ peakBytes })}`));
