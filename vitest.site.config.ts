/** @file `npm run test:site`: builds the site and opens its pages in Chromium and Firefox; not part of `npm test`. */
import { defineConfig } from "vitest/config";
import config from "./vitest.config.ts";

export default defineConfig({ ...config, test: { ...config.test, include: ["tests/site/*.site.ts"], maxWorkers: 1 } });
