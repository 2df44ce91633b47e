/** @file The training programs that are measured on a GPU, and the words of `tidemark bench` for each (gpu-beside.mjs, gpu-session.mjs). */

/** Of the arena; GPT-2 small keeps 1,424 MiB. */
const BUDGETS = [null, "2324MiB", "4GiB", "2900MiB", "2350MiB", "min"];
/** The same where activations are bf16: the second is 600 MiB over what is kept. */
const HALF_BUDGETS = [null, "2024MiB", "3GiB", "2500MiB", "1950MiB", "min"];
/** With the host's memory as second space: the second is below what is kept. */
const HOST_BUDGETS = ["1900MiB", "1300MiB"];

const large = (budgets, more = []) => budgets.map((budget) => ({ program: "gpt2-small", budget, more }));

/** By section; the first two budgets of a section are run twice, for their bits. */
export const LARGE = {
  gpt2: large(BUDGETS),
  bf16: large(HALF_BUDGETS, ["--autocast", "bf16"]),
  resnet: [{ program: "resnet50", budget: null, more: [] }],
  host: large(HOST_BUDGETS, ["--spill", "host"]),
};

export function benchWords({ program, products = "tf32", budget = null, more = [] }, steps) {
  const limit = budget === null ? [] : ["--budget", budget];
  return [
    "bench",
    program,
    "--target",
    "cuda",
    "--products",
    products,
    "--steps",
    String(steps),
    "--json",
    ...limit,
    ...more,
  ];
}
