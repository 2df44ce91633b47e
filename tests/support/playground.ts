/** @file The playground, built and served as `npm run playground` does it, for tests. */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { ROOT } from "./project.ts";

export interface Playground {
  readonly url: string;
  /** What was said about the files: their sizes. */
  readonly sizes: string;
  close(): void;
}

/** @param folder where the files go */
export async function servePlayground(folder: string): Promise<Playground> {
  const script = join(ROOT, "scripts", "playground.mjs");
  const child: ChildProcess = spawn(process.execPath, [script, "--port", "0", "--out", folder], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let sizes = "";
  child.stderr?.on("data", (text: Buffer) => {
    sizes += text.toString();
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout?.once("data", (text: Buffer) => resolve(text.toString().trim()));
    child.once("exit", () => reject(new Error(`the playground did not start:\n${sizes}`)));
  });
  return { url, sizes, close: () => child.kill("SIGTERM") };
}
