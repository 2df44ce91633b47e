/**
 * @file Finds the wind that blows a hanging cloth to a given place, through a thousand steps of its motion, and shows that
 * the memory for it does not depend on the number of steps:
 *
 *   npm run example:cloth -- [--size 10] [--steps 1000] [--iterations 40] [--memory 262144]
 *
 * Ends with exit code 1 when the cloth does not get there.
 */
import { parseArgs } from "node:util";
import { budgetText, sizeText } from "../shared/budget.mjs";
import { beside, canvas } from "../shared/picture.mjs";
import { optimise } from "./cloth.mjs";

const TARGET = [0.15, 0.7, -0.55];

/** The cloth seen from the side: the wind blows to the right. */
function sideView(places) {
  const points = places
    .toArray()
    .flat()
    .map(([, y, z]) => [y, z]);
  const lists = [
    { mark: "o", points },
    { mark: "X", points: [[TARGET[1], TARGET[2]]] },
  ];
  return canvas(lists, { width: 44, height: 18, x: [-0.4, 1.1], y: [-1.2, 0.1] });
}

function flatness({ size, parts, memory }) {
  console.log("\nsteps   arena of one iteration   with everything kept   slower by");
  for (const steps of [250, 500, 1000, 2000, 4000]) {
    const { info } = optimise({ size, parts, memory, steps, iterations: 0, target: TARGET });
    const [own, all] = [info.arenaBytes, info.storeAllArenaBytes].map(sizeText);
    console.log(`${String(steps).padEnd(8)}${own.padEnd(25)}${all.padEnd(23)}${info.slowdown.toFixed(2)}`);
  }
}

function main() {
  const { values } = parseArgs({
    options: {
      size: { type: "string", default: "10" },
      steps: { type: "string", default: "1000" },
      iterations: { type: "string", default: "40" },
      memory: { type: "string", default: String(256 * 2 ** 10) },
    },
  });
  const [size, steps, iterations, memory] = [values.size, values.steps, values.iterations, values.memory].map(Number);
  let before = null;
  const each = (i, loss, places) => {
    before ??= places;
    if (i % 5 === 0) console.log(`iteration ${i}: loss ${loss.toFixed(4)}`);
  };
  const settings = { size, steps, iterations, memory, parts: 10, target: TARGET };
  const { losses, places, info } = optimise({ ...settings, each });
  console.log(`\n${steps} steps of a cloth of ${size} × ${size} masses; ${budgetText(info, memory)}\n`);
  console.log(
    beside([
      ["without wind", sideView(before)],
      ["in the wind that was found", sideView(places)],
    ]),
  );
  flatness(settings);
  return losses.at(-1) < 0.01 ? 0 : 1;
}

process.exitCode = main();
