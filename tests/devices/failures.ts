/** @file Devices that fail in one way or another: what the others do, and what is said. */
import { compile, random, type Tensor, zeros } from "../../src/api/index.ts";
import { allReduce, type Device, mesh, onDevice, shard } from "../../src/parallel/index.ts";
import type { Input } from "./module.ts";

const sums = (size: number) =>
  compile(
    shard((x: Tensor) => allReduce(x.mul(2), { over: "data" }).sum(), {
      mesh: mesh({ data: size }),
      in: ["data"],
      out: [],
    }),
    { name: "sums" },
  );

/** Many sums, which take longer than a test waits. */
function sumForever(size: number, until: (i: number) => void): never {
  const step = sums(size);
  const x = random.normal(random.key(0), [64, 64]);
  for (let i = 0; ; i++) {
    until(i);
    step(x);
  }
}

export const failures: Readonly<Record<string, (device: Device<Input>) => unknown>> = {
  /** One throws while the others wait for it. */
  throws: ({ rank, size }) =>
    sumForever(size, (i) => {
      if (rank === 1 && i === 3) throw new Error("the data is not there");
    }),
  /** One throws something that is no error, later than others begin to wait. */
  throwsText: async ({ rank, size }) => {
    if (rank === 1) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      await Promise.reject("no error");
    }
    sumForever(size, () => undefined);
  },
  /** One is gone without a word. */
  ends: ({ rank, size }) =>
    sumForever(size, (i) => {
      if (rank === 1 && i === 3) process.exit(0);
    }),
  /** One returns early. */
  returns: ({ rank, size }) => {
    const step = sums(size);
    for (let i = 0; i < (rank === 1 ? 2 : 3); i++) step(zeros([4]));
  },
  /** One goes on with something else. */
  elsewhere: ({ rank, size }) => {
    const other = compile(
      shard((x: Tensor) => allReduce(x.exp(), { over: "data" }), { mesh: mesh({ data: size }), in: ["data"], out: [] }),
      { name: "other" },
    );
    const step = sums(size);
    step(zeros([4]));
    other(zeros([4]));
    for (let i = 0; i < 3; i++)
      if (rank === 1 && i === 1) other(zeros([4]));
      else step(zeros([4]));
  },
  /** One has other shapes than the rest. */
  different: ({ rank, size }) => sums(size)(zeros([rank === 1 ? 3 : 4])).item(),
  /** More devices than there are; and fewer. */
  mesh: ({ input }) => sums(input.given as number)(zeros([4])).item(),
  /** One that wants to be two. */
  again: () => onDevice(() => undefined),
  /** A result that does not travel. */
  tensor: () => ({ loss: [zeros([4])] }),
  /** One computes, and never comes to a meeting, when another throws. */
  busy: ({ rank, size }) => {
    if (rank === 1) for (;;);
    sumForever(size, (i) => {
      if (i === 0 && rank === 0) throw new Error("enough");
    });
  },
  /** A user who catches everything: the run ends all the same. */
  caught: ({ rank, size }) => {
    if (rank === 1) throw new Error("the first to fail");
    try {
      sumForever(size, () => undefined);
    } catch (error) {
      return String(error);
    }
    return "";
  },
};
