/** @file The explainer's pages in a browser, opened from files. */
import type { Browser, Page } from "playwright-core";
import { patience } from "./patience.ts";

const { buildExplainer, pageBytes, PAGES } = await import(
  new URL("../../scripts/site-explainer.mjs", import.meta.url).href
);

export const SLUGS: readonly string[] = [
  "index",
  ...(PAGES as readonly { readonly slug: string }[]).map(({ slug }) => slug),
];

/** Writes all pages; compressed bytes of what each loads. */
export async function buildPages(
  folder: string,
): Promise<readonly { readonly slug: string; readonly bytes: number }[]> {
  return pageBytes(await buildExplainer(folder, { home: null }));
}

export interface PageLook {
  readonly width: number;
  readonly dark: boolean;
}

export const WIDE: PageLook = { width: 1280, dark: false };
export const PHONE: PageLook = { width: 390, dark: true };

export interface OpenPage {
  readonly page: Page;
  /** Errors, and addresses outside of the folder that were asked for. */
  readonly problems: readonly string[];
}

/** Opens a page from its file and waits until all its figures have been drawn. */
export async function openPage(browser: Browser, address: string, { width, dark }: PageLook): Promise<OpenPage> {
  const looks = { colorScheme: dark ? "dark" : "light" } as const;
  const page = await browser.newPage({ viewport: { width, height: 900 }, ...looks });
  page.setDefaultTimeout(patience(120_000));
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("request", (request) => {
    if (!/^(file|data|blob):/.test(request.url())) problems.push(`asked for ${request.url()}`);
  });
  await page.goto(address);
  await page.waitForSelector("html[data-ready],html[data-failed]", { state: "attached" });
  return { page, problems };
}

/** The numbers that a page shows, by name. */
export async function shownNumbers(page: Page): Promise<ReadonlyMap<string, number>> {
  const code = `[...document.querySelectorAll("[data-number]")].map((e) => [e.dataset.number, Number(e.dataset.value)])`;
  return new Map(await page.evaluate<[string, number][]>(code));
}

/** What axe finds: rule, element and reason. It looks at what is shown. */
export async function accessibilityProblems(page: Page, axe: string): Promise<readonly string[]> {
  await page.evaluate(axe);
  const code = `axe.run(document, { resultTypes: ["violations"], preload: false }).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + " " + target.join(" ") + ": " + failureSummary)))`;
  return page.evaluate<string[]>(code);
}
