#!/usr/bin/env node
/** @file The command line's door: everything happens in the compiled `cli/main`, which returns the exit code. */
import { main } from "../dist/cli/main.js";

process.exitCode = await main(process.argv.slice(2));
