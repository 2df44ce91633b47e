/**
 * @file Creates elements from data. Names of a plan only become text nodes and attribute values, so a file cannot
 * inject markup.
 */

export type Child = Node | string | null;
type Attributes = Readonly<Record<string, string | number | boolean | null>>;

/** An element with attributes; `true` is an attribute without a value, `null` and `false` none. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  append(element, children);
  return element;
}

/** The same for drawings. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAttributes(element, attributes);
  append(element, children);
  return element;
}

function setAttributes(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
}

function append(element: Element, children: readonly Child[]): void {
  for (const child of children) if (child !== null) element.append(child);
}

/** A button with its action. */
export function button(label: Child, does: () => void, attributes: Attributes = {}): HTMLButtonElement {
  const element = h("button", { type: "button", ...attributes }, label);
  element.addEventListener("click", does);
  return element;
}

export function replace(element: Element, ...children: readonly Child[]): void {
  element.replaceChildren(...children.filter((child) => child !== null));
}
