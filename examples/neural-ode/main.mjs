/**
 * @file Learns the equation behind a spiral:
 *
 *   npm run example:neural-ode -- [--points 100] [--iterations 1000] [--memory 262144]
 *
 * Ends with the true points and the learned solution in one picture, and with exit code 1 when they are far apart.
 */
import { parseArgs } from "node:util";
import { budgetText } from "../shared/budget.mjs";
import { canvas } from "../shared/picture.mjs";
import { distance, learn, spiral } from "./spiral.mjs";

function main() {
  const { values } = parseArgs({
    options: {
      points: { type: "string", default: "100" },
      iterations: { type: "string", default: "1000" },
      memory: { type: "string", default: String(256 * 2 ** 10) },
    },
  });
  const [points, iterations, memory] = [values.points, values.iterations, values.memory].map(Number);
  const data = spiral({ points, duration: 10 });
  const each = (i, loss) => {
    if (i % 100 === 0) console.log(`iteration ${i}: loss ${loss.toExponential(2)}`);
  };
  const { learned, losses, info } = learn(data, { hidden: 48, length: 25, iterations, memory, each });
  console.log(`iteration ${iterations}: loss ${losses.at(-1).toExponential(2)}\n\n${budgetText(info, memory)}\n`);
  const lists = [
    { mark: ".", points: data.truth.toArray() },
    { mark: "o", points: learned.toArray() },
  ];
  console.log(canvas(lists, { width: 72, height: 28, x: [-1.6, 1.6], y: [-1.6, 1.6] }));
  const far = distance(learned, data.truth);
  console.log(`. truth   o learned; they are ${far.toFixed(3)} apart in the mean`);
  return far < 0.25 ? 0 : 1;
}

process.exitCode = main();
