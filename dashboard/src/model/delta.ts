// How the second of two jobs differs from the first, as the comparison prints it.

import type { Row } from "../api/types.ts";
import { fixed } from "../format/numbers.ts";

export type Better = "more" | "less" | "neither";

export interface Delta {
  text: string;
  verdict: "better" | "worse" | "";
}

// A run that was over sooner is better; one that has gone on for longer so far is not worse.
export const betterTime = (a: Row, b: Row): Better => (a.finished !== undefined && b.finished !== undefined ? "less" : "neither");

// "+12.5 %"; nothing where either is unknown, or the first is 0.
export function deltaOf(a: number | undefined, b: number | undefined, better: Better): Delta {
  if (a === undefined || b === undefined || a === 0) return { text: "", verdict: "" };
  const share = (b - a) / Math.abs(a);
  const text = `${share > 0 ? "+" : ""}${fixed(share * 100, 1)} %`;
  if (better === "neither" || Math.abs(share) < 0.001) return { text, verdict: "" };
  return { text, verdict: share > 0 === (better === "more") ? "better" : "worse" };
}
