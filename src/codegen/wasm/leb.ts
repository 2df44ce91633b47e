/** @file Whole numbers of 32 bits in as few bytes as they need, seven bits in each ("LEB128"). */

/** Without a sign. */
export function unsignedLeb(n: number): number[] {
  const out: number[] = [];
  let rest = n >>> 0;
  do {
    const byte = rest & 0x7f;
    rest >>>= 7;
    out.push(rest ? byte | 0x80 : byte);
  } while (rest);
  return out;
}

/** With one. */
export function signedLeb(n: number): number[] {
  const out: number[] = [];
  let rest = n | 0;
  for (;;) {
    const byte = rest & 0x7f;
    rest >>= 7;
    if ((rest === 0 && !(byte & 0x40)) || (rest === -1 && byte & 0x40)) {
      out.push(byte);
      return out;
    }
    out.push(byte | 0x80);
  }
}
