/** @file Pages with one script in a real browser: those under /isolated/ are isolated from other origins, as shared memory asks; others are not. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { launch } from "./browser.ts";
import { patience } from "./patience.ts";

const ISOLATED = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };

export interface IsolatedPages {
  /** Runs text in a new page of a folder, which gives a value. */
  inPage<R>(folder: string, text: string): Promise<R>;
  close(): Promise<void>;
}

/** `html` loads the script, by any name that ends in .js. */
export async function isolatedPages(
  path: string,
  { html, script }: Record<"html" | "script", string>,
): Promise<IsolatedPages> {
  const server = createServer(({ url }, response) => {
    const isScript = url?.endsWith(".js");
    const headers = url?.startsWith("/isolated/") ? ISOLATED : {};
    response.writeHead(200, { "Content-Type": isScript ? "text/javascript" : "text/html", ...headers });
    response.end(isScript ? script : html);
  });
  const listening = new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const [browser] = await Promise.all([launch(path), listening]);
  const { address, port } = server.address() as AddressInfo;
  return {
    async inPage<R>(folder: string, text: string): Promise<R> {
      const page = await browser.newPage();
      page.setDefaultTimeout(patience(60_000));
      await page.goto(`http://${address}:${port}/${folder}/`);
      const value = await page.evaluate<R>(text);
      await page.close();
      return value;
    },
    async close(): Promise<void> {
      server.close();
      await browser.close();
    },
  };
}
