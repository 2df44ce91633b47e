/**
 * @file The names that the editor completes. The build puts the list in the place of this file, from the published types
 * (scripts/completions.mjs); unbuilt sources have none.
 */

export interface CompletionItem {
  readonly name: string;
  readonly kind: "function" | "class" | "constant" | "namespace" | "type" | "method" | "property";
  /** Parameters and result of a function, the type of a constant; empty otherwise. */
  readonly signature: string;
  /** The first sentence of its documentation. */
  readonly about: string;
}

export interface CompletionList {
  /** Exports of modules, by the names under which they are imported. */
  readonly modules: Readonly<Record<string, readonly CompletionItem[]>>;
  /** Methods and properties of tensors. */
  readonly tensor: readonly CompletionItem[];
  /** Members of exported objects, such as `random`. */
  readonly namespaces: Readonly<Record<string, readonly CompletionItem[]>>;
}

export const COMPLETIONS: CompletionList = { modules: {}, tensor: [], namespaces: {} };
