// Numbers that look like chance and follow from where they stand, so that each run of a test sees the same jobs.

// 0 to 1.
export function noise(a: number, b = 0, c = 0): number {
  let x = (Math.imul(a, 0x9e3779b1) ^ Math.imul(b, 0x85ebca77) ^ Math.imul(c, 0xc2b2ae3d)) >>> 0;
  x = Math.imul(x ^ (x >>> 15), 0x2c1b3c6d) >>> 0;
  x = Math.imul(x ^ (x >>> 12), 0x297a2d39) >>> 0;
  return ((x ^ (x >>> 15)) >>> 0) / 4294967296;
}

// About -1 to 1, around 0.
export const around = (a: number, b = 0, c = 0): number => noise(a, b, c) + noise(a, b, c + 7919) - 1;

export const pick = <T>(from: readonly T[], a: number, b = 0): T => from[Math.floor(noise(a, b, 31) * from.length)]!;
