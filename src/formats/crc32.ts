/** @file The checksum of zip archives: the remainder of the bits by x³² + x²⁶ + x²³ + …, lowest bits first. */

function table(): Uint32Array {
  return Uint32Array.from({ length: 256 }, (_, byte) => {
    let bits = byte;
    for (let k = 0; k < 8; k++) bits = bits & 1 ? (bits >>> 1) ^ 0xedb88320 : bits >>> 1;
    return bits;
  });
}

let remainders: Uint32Array | undefined;

export function crc32(bytes: Uint8Array): number {
  remainders ??= table();
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ (remainders[(crc ^ byte) & 255] as number);
  return (crc ^ 0xffffffff) >>> 0;
}
