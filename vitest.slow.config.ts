/** @file `npm run test:slow`: the test files that take minutes; not part of `npm test`. */
import { defineConfig } from "vitest/config";
import config, { SLOW } from "./vitest.config.ts";

export default defineConfig({ ...config, test: { ...config.test, include: SLOW, exclude: [] } });
