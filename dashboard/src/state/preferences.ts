// What a person chose for this browser: colours and time zone.

import type { Zone } from "../format/times.ts";
import { Cell } from "./cell.ts";

export type Theme = "auto" | "light" | "dark";

function stored<T extends string>(key: string, allowed: readonly T[], otherwise: T): Cell<T> {
  let value: string | null = null;
  try {
    value = localStorage.getItem(key);
  } catch {
    // Storage may be switched off; the choice then lasts as long as the page.
  }
  const cell = new Cell<T>(allowed.includes(value as T) ? (value as T) : otherwise);
  cell.watch(() => {
    try {
      localStorage.setItem(key, cell.value);
    } catch {
      // As above.
    }
  });
  return cell;
}

export const theme = stored<Theme>("paceline.theme", ["auto", "light", "dark"], "auto");
export const zone = stored<Zone>("paceline.zone", ["local", "utc"], "local");

const systemDark = matchMedia("(prefers-color-scheme: dark)");
export const dark = new Cell(false);

function applyTheme(): void {
  dark.value = theme.value === "dark" || (theme.value === "auto" && systemDark.matches);
  document.documentElement.dataset["theme"] = dark.value ? "dark" : "light";
}

export function startPreferences(): void {
  applyTheme();
  theme.watch(applyTheme);
  systemDark.addEventListener("change", applyTheme);
}
