#!/usr/bin/env node
/** @file The command line's door: everything happens in the compiled `cli/main`, which returns the exit code. */
import { main } from "../dist/cli/main.js";

const code = await main(process.argv.slice(2));
const written = (stream) => new Promise((resolve) => stream.write("", resolve));
await Promise.all([process.stdout, process.stderr].map(written));
// What a module left running, a timer or a server, does not keep the command.
process.exit(code);
