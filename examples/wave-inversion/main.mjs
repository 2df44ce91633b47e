/**
 * @file Finds what is hidden in a medium from the waves that went through it:
 *
 *   npm run example:wave -- [--size 40] [--steps 140] [--iterations 60] [--memory 1572864]
 *
 * Ends with the true and the recovered medium side by side, and with exit code 1 when they are not alike.
 */
import { parseArgs } from "node:util";
import { budgetText, sizeText } from "../shared/budget.mjs";
import { beside, shades } from "../shared/picture.mjs";
import { anomaly, invert, likeness, survey } from "./wave.mjs";

/** The arena without the recorded data, which is an input and grows with the steps. */
function flatness(sizes, memory) {
  console.log("\nsteps   arena without what was heard   with everything kept   slower by");
  for (const steps of [140, 280, 560, 1120]) {
    const given = invert(survey({ ...sizes, steps }), { iterations: 0 }).observedBytes;
    const { info } = invert(survey({ ...sizes, steps }), { iterations: 0, memory: memory + given });
    const own = [info.arenaBytes - given, info.storeAllArenaBytes - given].map(sizeText);
    console.log(`${String(steps).padEnd(8)}${own[0].padEnd(31)}${own[1].padEnd(23)}${info.slowdown.toFixed(2)}`);
  }
}

function main() {
  const { values } = parseArgs({
    options: {
      size: { type: "string", default: "40" },
      shots: { type: "string", default: "4" },
      steps: { type: "string", default: "140" },
      iterations: { type: "string", default: "60" },
      memory: { type: "string", default: String(1.5 * 2 ** 20) },
    },
  });
  const [size, shots, steps, iterations, memory] = [
    values.size,
    values.shots,
    values.steps,
    values.iterations,
    values.memory,
  ].map(Number);
  const known = survey({ size, shots, steps });
  const wanted = anomaly(known).mul(known.inside);
  const each = (i, loss, medium) => {
    if (i % 10 === 0)
      console.log(`iteration ${i}: misfit ${loss.toExponential(3)}, likeness ${likeness(medium, wanted).toFixed(3)}`);
  };
  const { medium, misfits, info } = invert(known, { iterations, memory, each });
  console.log(`\n${shots} shots of ${steps} steps on ${size} × ${size} cells, f64; ${budgetText(info, memory)}\n`);
  const range = [-0.2, 0.25];
  console.log(
    beside([
      ["true medium", shades(wanted.toArray(), range)],
      ["recovered", shades(medium.toArray(), range)],
    ]),
  );
  flatness({ size, shots }, memory);
  const alike = likeness(medium, wanted);
  console.log(`\nmisfit ${(misfits[0] / misfits.at(-1)).toFixed(0)} times smaller, likeness ${alike.toFixed(3)}`);
  return alike > 0.8 ? 0 : 1;
}

process.exitCode = main();
