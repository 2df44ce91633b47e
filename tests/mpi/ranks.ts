/**
 * @file What each process of a run by `mpirun` does, for tests/mpi.test.ts: bundled to JavaScript, and started with the name of a
 * part. A failure is thrown, and ends all processes; rank 0 prints what was found.
 */
import { installHost } from "../../src/api/host.ts";
import { nodeHost } from "../../src/node/host.ts";
import { mpi } from "../../src/node/mpi/public.ts";
import { collectives } from "./collectives.ts";
import { failures } from "./failures.ts";
import { training } from "./training.ts";

installHost(nodeHost);

const PARTS: Readonly<Record<string, () => unknown>> = { collectives, training, ...failures };

const [, , name = ""] = process.argv;
const part = PARTS[name];
if (!part) throw new Error(`there is no part ${name}: ${Object.keys(PARTS).join(", ")}`);
const found = await part();
if (mpi().rank === 0) console.log(JSON.stringify(found));
