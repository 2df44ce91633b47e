/** @file What every page does when it starts: colours, and marks for measurements and tests. */
import { button } from "../../../src/view/page/dom.ts";

const KEPT = "tidemark-theme";

export const isDark = (): boolean => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

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
  const element = button("", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem(KEPT, theme);
    } catch {
      // A page without storage follows the system again after a reload.
    }
    draw();
    for (const listener of listeners) listener();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    draw();
    for (const listener of listeners) listener();
  });
  draw();
  return element;
}

/** To be called when the page's first figure is drawn. */
export function firstFigure(): void {
  if (performance.getEntriesByName("first-figure").length > 0) return;
  performance.mark("first-figure");
  document.documentElement.dataset.drawn = "true";
}

/** Starts a page; it is ready when all its figures have been drawn once. */
export function startPage(figures: readonly (() => Promise<void> | void)[]): void {
  document.getElementById("theme")?.replaceChildren(themeButton());
  void Promise.all(figures.map(async (figure) => figure())).then(
    () => {
      document.documentElement.dataset.ready = "true";
    },
    (error) => {
      document.documentElement.dataset.failed = "true";
      throw error;
    },
  );
}
