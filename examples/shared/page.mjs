/** @file Parts of the pages: elements by name, how far compiling is, a line of losses, a file to download. */
import { sizeText } from "./budget.mjs";

export const byId = (id) => document.getElementById(id);

/** Shows `compileAsync` at work. */
export function showProgress({ stage, share, plans, plan, note }) {
  byId("progress").value = share;
  const smallest = plan ? `, the last one takes ${sizeText(plan.arenaBytes)}` : "";
  byId("status").textContent = note ?? (stage === "plan" ? `planning: ${plans} plans${smallest}` : stage);
}

/** What a plan saves and costs, in a sentence. */
export function resultText({ arenaBytes, storeAllArenaBytes, slowdown }) {
  if (arenaBytes >= storeAllArenaBytes) return `${sizeText(arenaBytes)}: everything is kept`;
  const more = Math.round(100 * (slowdown - 1));
  return `${sizeText(arenaBytes)} instead of ${sizeText(storeAllArenaBytes)}, for ${more} % more time (predicted)`;
}

/** Draws numbers as a line from left to right, the largest at the top. */
export function drawLine(svg, numbers, total) {
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
  const points = numbers.map((n, i) => `${(100 * i) / total},${100 - (100 * (n - least)) / (most - least || 1)}`);
  svg.querySelector("polyline").setAttribute("points", points.join(" "));
}

export function download(name, bytes) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([bytes]));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
