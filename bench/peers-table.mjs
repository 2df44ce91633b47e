/**
 * @file The results of bench/peers.mjs as Markdown: the figures, the ratios at equal threads, and which bars are met.
 * Ratios of times and of start-up are how many times as long the peer takes; of memory, how many times as much it
 * holds: above 1, Tidemark is ahead. Pure functions of the results.
 */

/** Ours, the peer at the same number of threads. */
const PAIRS = [
  ["wasm 1t", "tfjs 1t"],
  ["wasm 1t", "jax-js 1t"],
  ["wasm 2t", "jax-js 2t"],
  ["native 1t", "torch 1t"],
  ["native 2t", "torch 2t"],
];
/** Largest relative distance of a loss of the first steps. */
const SAME_LOSS = 1e-4;
const FIRST_LOSSES = 5;

const line = (cells) => `| ${cells.join(" | ")} |`;
const markdown = (heads, rows) =>
  [line(heads), line(heads.map((_, i) => (i === 0 ? "---" : "---:"))), ...rows.map(line)].join("\n");
const digits = (x) => (x >= 100 ? x.toFixed(0) : x.toPrecision(3));

const QUANTITIES = {
  "step, ms": (r) => r.medianMs,
  "cpu of a step, ms": (r) => r.cpuMedianMs,
  "peak resident, MB": (r) => r.peakRssBytes / 1e6,
  "start-up, ms": (r) => r.startMs,
};
/** Tidemark plans an arena; a peer has none, so its resident memory is compared with it. */
const ARENA = "peak resident / arena";
const COMPARED = {
  ...Object.fromEntries(Object.entries(QUANTITIES).map(([name, of]) => [name, [of, of]])),
  [ARENA]: [(r) => r.ownPeakBytes, (r) => r.peakRssBytes],
};
const LEAST = ["medianMs", "cpuMedianMs", "peakRssBytes", "startMs"];

/** Two measurements of one pair as one: the least of each quantity, which other work on the machine made larger. */
export function leastOf(before, found) {
  const both = { ...found, startMs: found.importMs + found.firstStepMs };
  if (!before) return both;
  return { ...before, ...Object.fromEntries(LEAST.map((key) => [key, Math.min(before[key], both[key])])) };
}

const finder = (results) => {
  const by = new Map(results.map((r) => [r.id, r]));
  return (tool, workload) => by.get(`${tool}/${workload}`);
};

const workloadsOf = (results) => [...new Set(results.map((r) => r.workload))];

/** One table for each quantity, a column for each tool. */
export function stepsText(results, programs) {
  const tools = [...new Set(results.map((r) => r.tool))];
  const find = finder(results);
  const tables = Object.entries(QUANTITIES).map(([quantity, of]) => {
    const rows = workloadsOf(results).map((w) => [
      programs[w],
      ...tools.map((tool) => {
        const found = find(tool, w);
        return found && !found.error ? digits(of(found)) : "–";
      }),
    ]);
    return markdown([quantity, ...tools], rows);
  });
  return `${tables.join("\n\n")}\n`;
}

/** Peer over ours. */
function ratio(find, [ours, peer], workload, [ofOurs, ofPeer]) {
  const [a, b] = [find(ours, workload), find(peer, workload)];
  return a && b && !a.error && !b.error ? ofPeer(b) / ofOurs(a) : null;
}

export function ratiosText(results, programs) {
  const find = finder(results);
  const tables = Object.entries(COMPARED).flatMap(([quantity, of]) => {
    const used = PAIRS.filter((pair) => workloadsOf(results).some((w) => ratio(find, pair, w, of) !== null));
    if (used.length === 0) return [];
    const rows = workloadsOf(results).map((w) => [
      programs[w],
      ...used.map((pair) => {
        const found = ratio(find, pair, w, of);
        return found === null ? "–" : `${digits(found)} ×`;
      }),
    ]);
    return markdown([`peer / Tidemark: ${quantity}`, ...used.map(([ours, peer]) => `${peer} / ${ours}`)], rows);
  });
  return tables.length === 0 ? "" : `${tables.join("\n\n")}\n`;
}

/** The worst relative distance of the first losses from those of a peer, or of any other tool. */
function lossDistance(results, workload) {
  const rows = results.filter((r) => r.workload === workload && r.losses);
  const reference = rows.find((r) => r.tool.startsWith("torch")) ?? rows[0];
  const distance = (r) => {
    const shared = Math.min(FIRST_LOSSES, r.losses.length, reference.losses.length);
    const apart = r.losses.slice(0, shared).map((loss, i) => Math.abs(loss / reference.losses[i] - 1));
    return Math.max(0, ...apart);
  };
  return rows.map((r) => ({ id: r.id, distance: distance(r) }));
}

/** Whether step times are ahead at equal threads, and whether all compute the same. */
export function barsText(results) {
  const find = finder(results);
  const bars = PAIRS.flatMap((pair) => {
    const found = workloadsOf(results).map((w) => [w, ratio(find, pair, w, COMPARED["step, ms"])]);
    const known = found.filter(([, r]) => r !== null);
    if (known.length === 0) return [];
    const behind = known.filter(([, r]) => r < 1).map(([w, r]) => `${w} ${r.toFixed(2)}`);
    const verdict = behind.length === 0 ? "on every workload measured" : `NOT on ${behind.join(", ")}`;
    return [`${pair[0]} no slower than ${pair[1]}: ${verdict} (${known.length})`];
  });
  const apart = workloadsOf(results).flatMap((w) => lossDistance(results, w));
  const wrong = apart.filter(({ distance }) => !(distance < SAME_LOSS));
  const worst = Math.max(0, ...apart.map(({ distance }) => distance)).toExponential(1);
  const losses = wrong.map(({ id, distance }) => `LOSSES DIFFER: ${id} by ${distance.toExponential(1)}`);
  return [...bars, ...(losses.length > 0 ? losses : [`losses agree to ${worst}`])].map((l) => `- ${l}`).join("\n");
}
