// Points in time, for people: how long ago as `paceline get` says it, and exactly, in this browser's time zone or in UTC, with the zone named.

import { NONE } from "./numbers.ts";

export type Zone = "local" | "utc";

// Milliseconds since the epoch; null where `text` is no time.
export function parseTime(text: string | null | undefined): number | null {
  if (!text) return null;
  const time = Date.parse(text);
  return Number.isNaN(time) ? null : time;
}

// "45s", "5m10s", "3h20m", "2d4h": cli/view/age.cc. The second unit only while it says something.
export function ageText(since: number | null, now: number): string {
  if (since === null) return NONE;
  const seconds = Math.max(0, Math.trunc((now - since) / 1000));
  const minutes = Math.trunc(seconds / 60);
  const hours = Math.trunc(minutes / 60);
  const days = Math.trunc(hours / 24);
  const two = (first: number, unit: string, second: number, smaller: string) =>
    second === 0 ? `${first}${unit}` : `${first}${unit}${second}${smaller}`;
  if (seconds < 120) return `${seconds}s`;
  if (minutes < 10) return two(minutes, "m", seconds % 60, "s");
  if (hours < 3) return `${minutes}m`;
  if (hours < 8) return two(hours, "h", minutes % 60, "m");
  if (days < 2) return `${hours}h`;
  if (days < 8) return two(days, "d", hours % 24, "h");
  return `${days}d`;
}

const formats = new Map<string, Intl.DateTimeFormat>();

function parts(time: number, zone: Zone, timeZone?: string): Map<string, string> {
  const name = zone === "utc" ? "UTC" : timeZone;
  const key = name ?? "";
  let format = formats.get(key);
  if (!format) {
    format = new Intl.DateTimeFormat("en-GB", {
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      hourCycle: "h23",
      timeZone: name,
      timeZoneName: "short",
    });
    formats.set(key, format);
  }
  return new Map(format.formatToParts(time).map((part) => [part.type, part.value]));
}

// "2026-11-28 22:34:57 CET". `timeZone` takes the place of the browser's, for tests.
export function exactTime(time: number, zone: Zone, timeZone?: string): string {
  const p = parts(time, zone, timeZone);
  return `${p.get("year")}-${p.get("month")}-${p.get("day")} ${p.get("hour")}:${p.get("minute")}:${p.get("second")} ${p.get("timeZoneName")}`;
}

// "22:34:57", for lists that name the zone in their head.
export function clockTime(time: number, zone: Zone, timeZone?: string): string {
  const p = parts(time, zone, timeZone);
  return `${p.get("hour")}:${p.get("minute")}:${p.get("second")}`;
}

export function zoneName(now: number, zone: Zone, timeZone?: string): string {
  return parts(now, zone, timeZone).get("timeZoneName") ?? "UTC";
}
