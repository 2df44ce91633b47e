/**
 * @file Trains on several processes, and goes on where it was stopped, on as many or on others:
 *
 *   npm run example:processes                                     one process
 *   mpirun -n 4 node examples/processes/main.mjs [FOLDER]         four; kill one, and start it again with two
 */

import { tmpdir } from "node:os";
import { join } from "node:path";
import { mpi } from "tidemark/node";
import { learnSpirals, rightOf } from "./training.mjs";

const [, , directory = join(tmpdir(), "tidemark-processes")] = process.argv;
const { rank, size } = mpi();
const steps = 600;
const { params, ran, resumedFrom, damaged } = await learnSpirals({
  ...{ processes: size, directory, steps },
  // called on the first process alone
  onStep: (i, loss) => {
    if ((i + 1) % 100 === 0) console.log(`step ${i + 1}: loss ${loss.item().toFixed(3)}`);
  },
});
if (rank === 0) {
  for (const text of damaged) console.log(`left out: ${text}`);
  const begun = resumedFrom === null ? "from the beginning" : `from a snapshot of ${resumedFrom}`;
  console.log(
    `${size === 1 ? "one process" : `${size} processes`} ran ${ran} of ${steps} steps ${begun}; ${(100 * rightOf(params)).toFixed(1)} % right`,
  );
  console.log(`the run is in ${directory}: remove it to begin again`);
}
