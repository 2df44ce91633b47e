/** @file Processes that fail in one way or another: what the others do, and what is said. */
import { writeSync } from "node:fs";
import { compile, random, type Tensor, zeros } from "../../src/api/index.ts";
import { mpi } from "../../src/node/mpi/public.ts";
import { allReduce, mesh, shard } from "../../src/parallel/index.ts";

const sums = () =>
  compile(
    shard((x: Tensor) => allReduce(x.mul(2), { over: "data" }).sum(), {
      mesh: mesh({ data: mpi().size }),
      in: ["data"],
      out: [],
    }),
    { target: "native", name: "sums" },
  );

/** Many sums, which take longer than a test waits. */
function sumForever(until: (i: number) => void): never {
  const step = sums();
  const x = random.normal(random.key(0), [64, 64]);
  for (let i = 0; ; i++) {
    until(i);
    step(x);
  }
}

export const failures: Readonly<Record<string, () => unknown>> = {
  /** One has other shapes than the rest. */
  different: () => sums()(zeros([mpi().rank === 1 ? 3 : 4])).item(),
  /** One throws while the others wait for it. */
  throws: () =>
    sumForever((i) => {
      if (mpi().rank === 1 && i === 3) throw new Error("the data is not there");
    }),
  /** One is killed while the others wait for it. */
  killed: () =>
    sumForever((i) => {
      if (mpi().rank !== 1 || i !== 3) return;
      writeSync(2, `killed at ${Date.now()}\n`);
      process.kill(process.pid, "SIGKILL");
    }),
  /** One ends early, with a status. */
  ends: () =>
    sumForever((i) => {
      if (mpi().rank === 1 && i === 3) process.exit(3);
    }),
  /** More devices than processes. */
  larger: () => {
    const big = shard((x: Tensor) => allReduce(x, { over: "data" }), {
      mesh: mesh({ data: 7 }),
      in: ["data"],
      out: [],
    });
    compile(big, { target: "native", name: "big" })(zeros([4]));
  },
};
