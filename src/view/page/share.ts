/** @file The button that copies the page's address. */
import { button, h } from "./dom.ts";

/** How long a button says that something was done. */
const SAID_MS = 2000;

/** Copies where the browser allows it; false if it does not. */
async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedByField(text);
  }
}

/** The older way, which also works in pages that have no clipboard of their own. */
function copiedByField(text: string): boolean {
  const field = h("textarea", { readonly: true, class: "file" });
  field.value = text;
  const focused = document.activeElement;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return done;
}

/**
 * A button that copies an address and says so.
 * @param href the address
 * @param note shows the address where it cannot be copied
 */
export function copyLinkButton(href: () => Promise<string>, note: (text: string) => void): HTMLButtonElement {
  const label = "copy link";
  let timer = 0;
  const copy = async (): Promise<void> => {
    const address = await href();
    const done = await copied(address);
    if (!done) note(`This browser does not copy; the address is ${address}`);
    element.textContent = done ? "copied" : "not copied";
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      element.textContent = label;
    }, SAID_MS);
  };
  const element = button(label, () => void copy(), {
    id: "copy-link",
    "aria-live": "polite",
    title: "copies an address that opens this view: plan, selection, zoom, comparison and search",
  });
  return element;
}
