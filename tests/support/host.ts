/** @file The host of tests: Node's, installed once, whose parts a test may replace for a while. */
import { type Host, installPart } from "../../src/api/host.ts";
import { nodeHost } from "../../src/node/host.ts";

export const testHost: { -readonly [Part in keyof Host]: Host[Part] } = { ...nodeHost };

installPart("host", testHost);
