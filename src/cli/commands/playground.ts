/** @file `tidemark playground`: the playground's pages from a server on this machine. */
import { fileURLToPath } from "node:url";
import { type Command, integerOption, usageError } from "../command.ts";
import { openInBrowser } from "../open.ts";
import { isPlayground, servePlayground } from "../playground-server.ts";

/** From the package, and from the sources after a build. */
const PLACES = ["../playground", "../../../dist/playground"] as const;

function playgroundFolder(): string {
  const folders = PLACES.map((place) => fileURLToPath(new URL(place, import.meta.url)));
  const built = folders.find(isPlayground);
  if (built === undefined) throw usageError("playground: the pages are not built", "npm run build");
  return built;
}

export const playground: Command = {
  name: "playground",
  positionals: [],
  summary: "train under an adjustable budget and plan code as you type, in a browser",
  details: "Serves the pages on this machine and prints the address. They load nothing from other hosts.",
  options: {
    port: { value: "N", help: "port of the server; default: 7743, or any free port; 0: any free port" },
    open: { help: "open the page in the browser" },
  },
  async run(args, io) {
    const port = args.has("port") ? integerOption(args, "port", 0, { least: 0 }) : null;
    const server = await servePlayground(playgroundFolder(), port);
    io.out(`${server.url}\n`);
    io.err("Ctrl-C ends it\n");
    if (args.has("open")) await openInBrowser(server.url, io);
    process.once("SIGINT", server.close);
    process.once("SIGTERM", server.close);
    await server.closed;
  },
};
