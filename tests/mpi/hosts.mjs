/**
 * @file `npm run test:hosts`: two network namespaces of this machine as two hosts, each with its own name and address, tcp between them.
 * One process trains on each; the parameters have the bits of two processes of one host, and those of a pipeline the bits of one process. Needs root, ip and unshare; skipped, with a
 * word, where these are missing. Not part of `npm test`.
 *
 *   host A, 10.231.7.1 ── veth ── host B, 10.231.7.2
 *   mpirun, rank 0                rank 1, started by a script in place of ssh
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "rolldown";

const SUBNET = "10.231.7";
const [A, B] = ["tidemark-a", "tidemark-b"];
const BUNDLE = join(process.cwd(), "node_modules", ".cache", "mpi-hosts.mjs");

const has = (command) => spawnSync("sh", ["-c", `command -v ${command}`]).status === 0;

function skip(why) {
  console.error(`SKIPPED: two hosts on one machine: ${why}`);
  process.exit(process.env.CI && process.env.TEST_HOSTS ? 1 : 0);
}

if (process.getuid?.() !== 0) skip("this needs root, for network namespaces");
for (const [command, from] of [
  ["ip", "iproute2"],
  ["unshare", "util-linux"],
  ["mpirun", "openmpi-bin"],
  ["mpicc", "libopenmpi-dev"],
])
  if (!has(command)) skip(`${command} is missing (Debian: apt-get install ${from})`);

const ip = (...args) => execFileSync("ip", args, { stdio: ["ignore", "ignore", "pipe"] });

function makeHosts() {
  for (const name of [A, B]) ip("netns", "add", name);
  ip("link", "add", "tm-a", "netns", A, "type", "veth", "peer", "name", "tm-b", "netns", B);
  for (const [name, link, host] of [
    [A, "tm-a", 1],
    [B, "tm-b", 2],
  ]) {
    ip("-n", name, "addr", "add", `${SUBNET}.${host}/24`, "dev", link);
    ip("-n", name, "link", "set", link, "up");
    ip("-n", name, "link", "set", "lo", "up");
  }
}

const removeHosts = () => {
  for (const name of [A, B]) spawnSync("ip", ["netns", "del", name], { stdio: "ignore" });
};

/** A command in a namespace, under a host name of its own. */
const onHost = (name, ...words) => [
  "netns",
  "exec",
  name,
  "unshare",
  "--uts",
  "sh",
  "-c",
  'hostname "$0"; exec "$@"',
  name,
  ...words,
];

await build({
  input: "tests/mpi/ranks.ts",
  platform: "node",
  treeshake: false,
  external: ["koffi", "highs"],
  output: { file: BUNDLE, codeSplitting: false },
  logLevel: "silent",
});

const folder = mkdtempSync(join(tmpdir(), "tidemark-hosts-"));
// in place of ssh: the host is dropped, the command runs in the other namespace
const agent = join(folder, "agent.sh");
const quoted = `'hostname "$0"; exec sh -c "$*"'`;
writeFileSync(agent, `#!/bin/sh\nshift\nexec ip netns exec ${B} unshare --uts sh -c ${quoted} ${B} "$@"\n`, {
  mode: 0o700,
});

/** The JSON of rank 0. */
function found(command, args, env = {}) {
  const { status, stdout, stderr } = spawnSync(command, args, {
    encoding: "utf8",
    env: { ...process.env, ...env },
    timeout: 300_000,
  });
  if (status !== 0) throw new Error(`${command} ended with ${status}\n${stderr}\n${stdout}`);
  return JSON.parse(stdout.trim().split("\n").at(-1));
}

const common = ["--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"];
const program = (part) => [process.execPath, BUNDLE, part];

try {
  removeHosts();
  makeHosts();
  const network = ["btl", "self,tcp", "btl_tcp_if_include", `${SUBNET}.0/24`, "oob_tcp_if_include", `${SUBNET}.0/24`];
  const mca = ["plm_rsh_agent", agent, ...network];
  const options = mca.flatMap((word, i) => (i % 2 === 0 ? ["--mca", word] : [word]));
  const hosts = ["--host", `${SUBNET}.1:1,${SUBNET}.2:1`, "-n", "2"];
  const onTwo = (part) => found("ip", onHost(A, "mpirun", ...common, ...options, ...hosts, ...program(part)));
  const two = onTwo("trained");
  const one = found("mpirun", [...common, "-n", "2", ...program("trained")]);
  if (two.hash !== one.hash) throw new Error(`two hosts: ${two.hash}, one host: ${one.hash}`);
  if (two.hosts !== 2 || one.hosts !== 1) throw new Error(`${two.hosts} hosts, and ${one.hosts}`);
  if (two.inFlight === 0) throw new Error("no collective was in flight");
  const { alone, piped, hosts: count } = onTwo("onePipeline");
  const bits = ({ losses, stages, shared }) => JSON.stringify({ losses, stages, shared });
  if (bits(piped) !== bits(alone)) throw new Error(`a pipeline: ${bits(piped)}, one process: ${bits(alone)}`);
  if (count !== 2 || piped.inFlight === 0) throw new Error(`a pipeline on ${count} hosts, ${piped.inFlight} in flight`);
  console.log(
    `a pipeline on two hosts has the bits of one process: ${piped.shared.slice(0, 16)}, ${piped.inFlight} in flight`,
  );
  console.log(`two hosts have the bits of one: ${two.hash.slice(0, 16)}, losses ${two.losses.join(", ")}`);
} finally {
  removeHosts();
  rmSync(folder, { recursive: true, force: true });
}
