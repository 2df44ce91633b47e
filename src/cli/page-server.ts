/**
 * @file The server behind pages: loopback only, reads only. A request must name this machine as its host, against DNS
 * rebinding. No page can embed these ones; pages have memory that threads can share.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { TidemarkError } from "../base/errors.ts";

export interface PageServer {
  /** The address of the first page. */
  readonly url: string;
  readonly closed: Promise<void>;
  close(): void;
}

export interface Reply {
  readonly status: number;
  readonly type: string;
  readonly body: string | Uint8Array;
}

/** A request for something. */
export interface PageRequest {
  readonly path: string;
  readonly query: URLSearchParams;
  /** Whether a page of another site sends it. */
  readonly isForeign: boolean;
}

export type Answer = (request: PageRequest) => Reply | Promise<Reply>;

const HOST = "127.0.0.1";

export const textReply = (status: number, body: string): Reply => ({ status, type: "text/plain", body: `${body}\n` });
export const NOT_FOUND = textReply(404, "not found");

/**
 * @param command whose server it is, for messages
 * @param ports tried in this order; 0: any that is free
 */
export async function servePages(command: string, ports: readonly number[], answer: Answer): Promise<PageServer> {
  const server = createServer((request, response) => {
    const port = (server.address() as AddressInfo | null)?.port;
    void replyTo(request, [`${HOST}:${port}`, `localhost:${port}`], answer).then((reply) => send(response, reply));
  });
  const listens = (port: number): Promise<string | null> =>
    new Promise((resolve) => {
      if (port > 65535) return resolve("there is no such port");
      const refused = (error: Error & { readonly code?: string }): void => resolve(error.code ?? error.message);
      server.once("error", refused);
      server.listen(port, HOST, () => {
        server.off("error", refused);
        resolve(null);
      });
      return undefined;
    });
  let [why, refused] = ["" as string | null, 0];
  for (const port of ports) {
    [why, refused] = [await listens(port), port];
    if (why === null) break;
  }
  if (why !== null) {
    const help = "give another --port, or none for one that is free";
    throw new TidemarkError("UsageError", `${command}: port ${refused}: ${why}`, { help });
  }
  const closed = new Promise<void>((resolve) => {
    server.once("close", () => resolve());
  });
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://${HOST}:${(server.address() as AddressInfo).port}/`, closed, close };
}

async function replyTo(
  { method, headers, url = "/" }: IncomingMessage,
  hosts: readonly string[],
  answer: Answer,
): Promise<Reply> {
  if (!hosts.includes(headers.host ?? ""))
    return textReply(403, "this server answers only requests to its own address");
  if (method !== "GET" && method !== "HEAD") return textReply(405, "this server is read-only");
  if (!url.startsWith("/")) return textReply(400, "not an address");
  const site = headers["sec-fetch-site"];
  const isForeign = site !== undefined && site !== "same-origin" && site !== "none";
  const { pathname, searchParams } = new URL(`http://${HOST}${url}`);
  try {
    return await answer({ path: pathname, query: searchParams, isForeign });
  } catch (error) {
    return textReply(500, error instanceof Error ? error.message : String(error));
  }
}

function send(response: ServerResponse, { status, type, body }: Reply): void {
  response.writeHead(status, {
    "content-type": type,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "content-security-policy": "frame-ancestors 'none'",
  });
  response.end(body);
}
