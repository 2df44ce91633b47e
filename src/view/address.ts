/**
 * @file The state of a page as text after the `#` of its address, so that a copied address opens the same view:
 *
 *   #v1&budget=27262976&value=block0.attention.qkv&zoom=0.25,0.5,0,1048576
 *
 * First the version, then fields. Fields at their defaults are left out, and readers ignore unknown fields. An address
 * can be typed or cut off by anyone: reading one gives its fields or a problem, and never throws.
 */
import type { Window } from "./raster.ts";

export const ADDRESS_VERSION = 1;

/** Longer addresses are not read. */
const LONGEST = 2 ** 18;

export type AddressFields = Readonly<Record<string, string>>;

export type AddressReading = { readonly fields: AddressFields } | { readonly problem: string };

/** Characters that need no escape after `#`, which keeps addresses short and legible. */
const escaped = (text: string): string => encodeURIComponent(text).replaceAll("%2C", ",").replaceAll("%2F", "/");

/** With `#`, or empty if there are no fields. Empty fields are left out. */
export function addressText(fields: AddressFields): string {
  const parts = Object.entries(fields).flatMap(([name, value]) => (value === "" ? [] : [`${name}=${escaped(value)}`]));
  return parts.length === 0 ? "" : `#${[`v${ADDRESS_VERSION}`, ...parts].join("&")}`;
}

/** @param hash with or without `#` */
export function readAddress(hash: string): AddressReading {
  const text = hash.startsWith("#") ? hash.slice(1) : hash;
  if (text === "") return { fields: {} };
  if (text.length > LONGEST) return { problem: "it is too long" };
  const [first = "", ...parts] = text.split("&");
  const version = /^v(\d{1,6})$/.exec(first)?.[1];
  if (version === undefined) return { problem: "it does not begin with a version" };
  if (Number(version) > ADDRESS_VERSION)
    return { problem: `it is of version ${version}, this page reads up to ${ADDRESS_VERSION}` };
  const fields: [string, string][] = [];
  for (const part of parts) {
    const at = part.indexOf("=");
    if (at < 1) return { problem: `“${part.slice(0, 40)}” is not a field` };
    const value = unescaped(part.slice(at + 1));
    if (value === null) return { problem: `${part.slice(0, at)} is damaged` };
    fields.push([part.slice(0, at), value]);
  }
  return { fields: Object.fromEntries(fields) };
}

function unescaped(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** A field as a whole number from 0 on; null if it is missing, undefined if it is something else. */
export function wholeField(fields: AddressFields, name: string): number | null | undefined {
  const text = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (text === undefined) return null;
  const n = Number(text);
  return /^\d+$/.test(text) && Number.isSafeInteger(n) ? n : undefined;
}

/** A part of the plane: time as a share of all steps, then bytes. */
export const windowText = ({ t0, t1, a0, a1 }: Window): string =>
  [t0, t1, a0, a1].map((x, i) => `${Number(x.toFixed(i < 2 ? 7 : 0))}`).join(",");

/** Null if it is not such a part. */
export function windowOfText(text: string): Window | null {
  const numbers = text.split(",").map(Number);
  const [t0 = 0, t1 = 0, a0 = 0, a1 = 0] = numbers;
  const good = numbers.length === 4 && text.length < 100 && numbers.every(Number.isFinite);
  return good && t0 >= 0 && t1 > t0 && t1 <= 1 && a0 >= 0 && a1 > a0 ? { t0, t1, a0, a1 } : null;
}
