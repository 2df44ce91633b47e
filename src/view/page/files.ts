/** @file Opens files in the page: plan files and PyTorch snapshots, read by the same code as on the command line. */
import { TidemarkError } from "../../base/errors.ts";
import type { ViewEntry } from "../data.ts";
import { entriesOfFile } from "../read-file.ts";
import { h } from "./dom.ts";
import { type Store, shownOf, wholeFrame } from "./store.ts";

/** Reads files one after the other; errors are shown, and the page stays unchanged. */
export async function openFiles(store: Store, files: readonly File[], as: "shown" | "compared"): Promise<void> {
  for (const file of files) {
    try {
      addEntries(store, entriesOfFile(file.name, new Uint8Array(await file.arrayBuffer())), as);
    } catch (error) {
      const text = error instanceof TidemarkError ? error.message : `${file.name}: ${String(error)}`;
      store.set({ message: text });
    }
  }
}

export function addEntries(store: Store, added: readonly ViewEntry[], as: "shown" | "compared"): void {
  const [first] = added;
  if (!first) return;
  const { entries, sides, reachBytes, unfolded } = store.get();
  const shown = shownOf(first);
  const next = as === "shown" ? ([shown, ...sides.slice(1)] as const) : ([sides[0], shown] as const);
  store.set({
    entries: [...entries, ...added],
    sides: next,
    frame: wholeFrame(next, reachBytes, unfolded),
    selection: null,
    message: "",
  });
}

/** A button-like label around a file field. */
export function fileButton(label: string, opened: (files: readonly File[]) => void): HTMLElement {
  const input = h("input", { type: "file", accept: ".json,.pickle,.pkl,.csv,.gz", class: "file", "aria-label": label });
  input.addEventListener("change", () => {
    opened([...(input.files ?? [])]);
    input.value = "";
  });
  return h("label", { class: "button" }, label, input);
}

/** Files may be dropped anywhere. */
export function acceptDrops(store: Store): void {
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    void openFiles(store, [...(event.dataTransfer?.files ?? [])], event.shiftKey ? "compared" : "shown");
  });
}
