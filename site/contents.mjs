/**
 * @file The table of contents of the site: every document of the repository that is a page, by section and in order. A page that
 * is not listed here and in no folder that is listed is an error of the build.
 */

/** Sections of the navigation in their order, and in each the paths of documents, from the root of the repository. */
export const SECTIONS = [
  {
    title: "Start",
    documents: [
      "docs/quickstart.md",
      "docs/choosing.md",
      "docs/coming-from.md",
      "docs/migration.md",
      "docs/comparison.md",
      "docs/faq.md",
      "docs/tutorial/README.md",
      "docs/explainer.md",
    ],
  },
  {
    title: "Memory",
    documents: [
      "docs/budget.md",
      "docs/view.md",
      "docs/debugging-memory.md",
      "docs/half.md",
      "docs/lossy.md",
      "docs/spill.md",
      "docs/fit.md",
    ],
  },
  {
    title: "Training",
    documents: [
      "docs/training.md",
      "docs/data.md",
      "docs/optimizers.md",
      "docs/losses.md",
      "docs/saving.md",
      "docs/experts.md",
      "docs/generation.md",
      "docs/import.md",
    ],
  },
  {
    title: "Programs",
    documents: [
      "docs/simulations.md",
      "docs/long-runs.md",
      "docs/tape.md",
      "docs/shapes.md",
      "docs/vmap.md",
      "docs/mutation.md",
      "docs/linalg.md",
      "docs/fft.md",
    ],
  },
  {
    title: "Machines",
    documents: [
      "docs/workers-and-threads.md",
      "docs/native-and-gpus.md",
      "docs/webgpu.md",
      "docs/devices.md",
      "docs/mpi.md",
      "docs/scale.md",
      "docs/async.md",
      "docs/ahead-of-time.md",
      "docs/bundles.md",
      "docs/playground.md",
      "docs/numerics.md",
      "docs/performance.md",
      "docs/speed.md",
      "docs/security.md",
    ],
  },
  { title: "Formats", documents: ["docs/errors.md", "docs/plan-json.md", "docs/ir.md", "docs/onnx-results.md"] },
  { title: "Reference", documents: [] },
  {
    title: "Inside",
    documents: [
      "ARCHITECTURE.md",
      "docs/adding-an-op.md",
      "docs/adding-a-type.md",
      "docs/adding-a-target.md",
      "docs/testing.md",
      {
        title: "Decisions",
        text: "Why it is built like this: one page for each hard choice.",
        folder: "docs/decisions",
      },
      { title: "Lab", text: "Measurements and trials that are worth keeping.", folder: "docs/lab" },
      "CONTRIBUTING.md",
      "CHANGELOG.md",
    ],
  },
];

/** Documents that are written where a feature is there. */
export const OPTIONAL = ["docs/devices.md", "docs/mpi.md", "docs/scale.md", "docs/explainer.md"];

/** Pages that compute, by the document about them, which links them first. */
export const LIVE = {
  "docs/explainer.md": ["Open the explainer", "explainer/index.html"],
  "docs/playground.md": ["Open the playground", "playground/index.html"],
  "docs/view.md": ["Open a plan", "plans/cnn.html"],
};

/** What the first page of the site links before its text. */
export const FIRST_LINKS = [
  ["Quickstart", "documents/Quickstart.html"],
  ["Explainer", "explainer/index.html"],
  ["Playground", "playground/index.html"],
  ["All guides and the reference", "modules.html"],
];

/** The document that the site opens with. */
export const HOME = "README.md";

/** Categories of the functions of `tidemark`, by the file that defines them: a pattern of its path, first match counts. */
export const CATEGORIES = [
  [
    "Tensors",
    /^trace\/(literal|tensor)|^api\/(create|methods|tree|keys|random|draws|choices|rejection|numpy-files|specs?-|message|shards)/,
  ],
  ["Derivatives", /^api\/(grad|modes|jacobian|custom|linearize|vmap|reversible|coupling|associative)/],
  [
    "Compiling and planning",
    /^api\/(compile|plan|scope|request|deviation|lossy|autocast|webgpu|shape-family|ahead|host|prog)|^ops\/|^base\/errors|^runtime\/|^target\/|^compiler\//,
  ],
  ["Control flow", /^api\/control/],
  ["Losses", /^api\/(loss|distance-loss|linear-loss|ctc|reduction)/],
  ["Elementwise", /^api\/(elementwise|math|activations|special|arithmetic|aliases|dropout)/],
  ["Products, convolutions, attention", /^api\/(linear|conv|einsum|grouped|attention|pool|window|image|operands)/],
  ["Reductions and norms", /^api\/(reduce|cumulative|normalize|log-sum|search|sort)/],
  ["Shapes and indices", /^api\/(shape|arrange|join|indexing|scatter|mutation)/],
  ["Linear algebra and transforms", /^api\/(linalg|fft)/],
  ["Files and training loops", /^api\/(save|read-tensors|file-bytes|byte-streams|page-file|train-loop|safetensors)/],
];
