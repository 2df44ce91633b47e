/** @file The command line, called in this process. */
import { main } from "../../src/cli/main.ts";
import type { Outcome } from "./outcome.ts";

export async function tidemark(...argv: readonly string[]): Promise<Outcome> {
  let [out, err] = ["", ""];
  const io = {
    out: (text: string) => {
      out += text;
    },
    err: (text: string) => {
      err += text;
    },
  };
  return { code: await main(argv, io), out, err };
}
