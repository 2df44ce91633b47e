/**
 * @file Serves the page of `tidemark view` and the plans that it asks for. Those cost time, so requests from pages of
 * other sites are refused.
 */
import { NOT_FOUND, type PageServer, type Reply, servePages, textReply } from "./page-server.ts";
import type { PlanAnswers } from "./view-thread.ts";

const json = (value: unknown): Reply => ({ status: 200, type: "application/json", body: JSON.stringify(value) });

export type ViewServer = PageServer;

/** @param port 0: any that is free */
export function serveView(page: string, plans: PlanAnswers | null, port: number): Promise<ViewServer> {
  return servePages("view", [port], ({ path, query, isForeign }) => {
    if (path === "/") return { status: 200, type: "text/html; charset=utf-8", body: page };
    if (isForeign) return textReply(403, "this server answers only requests from its own page");
    return plans ? planReply(plans, path, query) : NOT_FOUND;
  });
}

async function planReply(plans: PlanAnswers, path: string, query: URLSearchParams): Promise<Reply> {
  if (path === "/curve") return json({ curve: await plans.curve() });
  if (path === "/plan") {
    const budget = Number(query.get("budget") || "x");
    const isBudget = Number.isSafeInteger(budget) && budget >= 0;
    return isBudget ? json(await plans.within(budget)) : textReply(400, "budget=BYTES");
  }
  if (path === "/story") {
    const story = await plans.story(query.get("plan") ?? "", Number(query.get("value") || "x"));
    return story ? json({ story }) : textReply(404, "no such value");
  }
  return NOT_FOUND;
}
