/** @file What every page does when it starts: colours, and marks for measurements and tests. */
import { button, h } from "../../../src/view/page/dom.ts";

const KEPT = "tidemark-theme";

/** The page has its colours from the beginning (scripts/site-explainer.mjs). */
export const isDark = (): boolean => document.documentElement.dataset.theme === "dark";

/** Whether the reader chose colours on a page. */
function hasChosen(): boolean {
  try {
    return localStorage.getItem(KEPT) !== null;
  } catch {
    return false;
  }
}

const listeners: (() => void)[] = [];

/** Calls when colours change. */
export function onTheme(listener: () => void): void {
  listeners.push(listener);
}

function themeButton(): HTMLElement {
  const draw = (): void => {
    element.textContent = isDark() ? "Light" : "Dark";
    element.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
  };
  const set = (theme: "light" | "dark"): void => {
    document.documentElement.dataset.theme = theme;
    draw();
    for (const listener of listeners) listener();
  };
  const element = button("", () => {
    const theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem(KEPT, theme);
    } catch {
      // A page without storage follows the system again after a reload.
    }
    set(theme);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", ({ matches }) => {
    if (!hasChosen()) set(matches ? "dark" : "light");
  });
  draw();
  return element;
}

/** On narrow screens the list of parts is wider than the page. */
function showPart(): void {
  const list = document.querySelector<HTMLElement>(".top ol");
  const here = list?.querySelector<HTMLElement>("[aria-current]");
  if (list && here) list.scrollLeft = here.offsetLeft - (list.clientWidth - here.offsetWidth) / 2;
}

/** Resolves when a figure is about to be seen: what takes seconds waits for that. */
export function aboutToBeSeen(id: string): Promise<void> {
  return new Promise((resolve) => {
    const figure = document.getElementById(id);
    if (!figure) return resolve();
    const observer = new IntersectionObserver(
      (entries) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        observer.disconnect();
        resolve();
      },
      { rootMargin: "300px" },
    );
    return observer.observe(figure);
  });
}

let drawn: () => void = () => {};
const isDrawn = new Promise<void>((resolve) => {
  drawn = resolve;
});

/** To be called when the page's first figure is drawn. */
export function firstFigure(): void {
  if (performance.getEntriesByName("first-figure").length > 0) return;
  performance.mark("first-figure");
  document.documentElement.dataset.drawn = "true";
  drawn();
}

/** Starts a page: its first figure alone, then the others. It is ready when all have been drawn once. */
export function startPage([first, ...others]: readonly (() => Promise<void> | void)[]): void {
  showPart();
  document.getElementById("theme")?.replaceChildren(themeButton());
  const after = async (figure: () => Promise<void> | void): Promise<void> => {
    await isDrawn;
    await figure();
  };
  void Promise.all([first?.(), ...others.map(after)]).then(
    () => {
      document.documentElement.dataset.ready = "true";
    },
    (error) => {
      document.documentElement.dataset.failed = "true";
      const why = String(error).split("\n")[0] ?? "";
      document
        .querySelector("h1")
        ?.after(h("p", { class: "aside", role: "alert" }, `A figure could not be computed: ${why}`));
      throw error;
    },
  );
}
