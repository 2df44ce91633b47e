/** @file The texts of the traced graph and of its derivative, each under its tab. */
import { button, h, replace } from "../../view/page/dom.ts";
import type { Sight } from "../study.ts";

export function textsView() {
  const tabs = [
    { name: "graph", text: "" },
    { name: "gradient", text: "" },
  ];
  let shown = 1;
  const place = h("pre", { class: "text", tabindex: 0, role: "tabpanel", id: "graph-text" });
  const bar = h("div", { class: "tabs", role: "tablist", "aria-label": "graphs" });
  const draw = (): void => {
    const buttons = tabs.map(({ name }, i) => {
      const attributes = { role: "tab", id: `tab-${name}`, "aria-selected": i === shown ? "true" : "false" };
      return button(name, () => choose(i), { ...attributes, "aria-controls": "graph-text" });
    });
    replace(bar, ...buttons);
    place.textContent = tabs[shown]?.text ?? "";
  };
  const choose = (tab: number): void => {
    shown = tab;
    draw();
    (bar.children[tab] as HTMLElement | undefined)?.focus();
  };
  return {
    element: h("div", {}, bar, place),
    set({ graph, gradient }: Sight): void {
      [graph, gradient].forEach((text, i) => {
        (tabs[i] as { text: string }).text = text;
      });
      draw();
    },
  };
}
