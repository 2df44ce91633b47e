/** @file The same as offload-chain.test.ts where the link is too slow for everything, so that some values are computed again. */
import { it } from "vitest";
import { expectNearLeast } from "./support/offload-plans.ts";

it("a chain of 100 stages at a quarter of its memory, copies twice as long as a stage", () => expectNearLeast(2));
