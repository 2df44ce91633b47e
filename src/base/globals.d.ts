/** @file Globals that every environment provides, for a core that is type-checked without DOM and Node. */
declare const performance: { now(): number };

declare const console: { warn(text: string): void };

declare class TextEncoder {
  encode(text: string): Uint8Array;
}

declare class TextDecoder {
  constructor(label: "utf-8", options: { readonly fatal: boolean });
  decode(bytes: Uint8Array): string;
}
