// Pieces that several views share: phases, times, errors, and the states in which there is nothing to show.

import type { ComponentChildren } from "preact";
import type { ApiError } from "../api/client.ts";
import type { Phase } from "../api/types.ts";
import { ageText, exactTime, parseTime } from "../format/times.ts";
import { now } from "../state/app.ts";
import { useCell } from "../state/cell.ts";
import { zone } from "../state/preferences.ts";
import { Icon, phaseIcon } from "./icons.tsx";

export function PhaseChip({ phase }: { phase: Phase }) {
  return (
    <span class={`phase phase-${phase.toLowerCase()}`}>
      <Icon name={phaseIcon(phase)} size={13} />
      {phase}
    </span>
  );
}

// How long ago, with the exact time for those who point at it.
export function Age({ time, suffix = "" }: { time: string | undefined; suffix?: string }) {
  const current = useCell(now);
  const where = useCell(zone);
  const at = parseTime(time);
  if (at === null) return <span>-</span>;
  return (
    <time dateTime={time} title={exactTime(at, where)}>
      {ageText(at, current)}
      {suffix}
    </time>
  );
}

export function Exact({ time }: { time: string | undefined }) {
  const where = useCell(zone);
  const at = parseTime(time);
  return at === null ? <span>-</span> : <time dateTime={time}>{exactTime(at, where)}</time>;
}

export function Bar({ share, label, tone = "" }: { share: number | undefined; label: string; tone?: string }) {
  const width = Math.max(0, Math.min(1, share ?? 0)) * 100;
  return (
    <span
      class={`bar ${tone}`}
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(width)}
    >
      <span class="bar-fill" style={{ width: `${width.toFixed(2)}%` }} />
    </span>
  );
}

const TITLES: Record<string, string> = {
  Forbidden: "You may not see this",
  NotFound: "There is no such thing",
  Unreachable: "The server can't be reached",
  Unavailable: "The server is not ready",
  TooMany: "Too many requests",
};

export function ErrorBox({ error, retry }: { error: ApiError; retry?: () => void }) {
  const forbidden = error.code === "Forbidden";
  return (
    <div class={`state ${forbidden ? "state-forbidden" : "state-error"}`} role="alert">
      <h2>{TITLES[error.code] ?? "Something went wrong"}</h2>
      <p>{error.message}</p>
      {error.help && <p class="dim">{error.help}</p>}
      {retry && !forbidden && (
        <button type="button" class="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <div class="state state-loading" role="status">
      <span class="spinner" aria-hidden="true" />
      Loading {what}…
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="state state-empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

// What a view shows of something that it loads; `data` wins over an error, which then stands above it.
export function Loaded<T>({
  resource,
  what,
  children,
}: {
  resource: { data: T | null; error: ApiError | null; reload(): void };
  what: string;
  children: (data: T) => ComponentChildren;
}) {
  if (resource.data === null) return resource.error ? <ErrorBox error={resource.error} retry={resource.reload} /> : <Loading what={what} />;
  return (
    <>
      {resource.error && (
        <p class="stale" role="status">
          Not up to date: {resource.error.message}
        </p>
      )}
      {children(resource.data)}
    </>
  );
}

export function Segmented<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: T;
  options: readonly (readonly [T, string])[];
  onChange: (value: T) => void;
}) {
  return (
    <div class="segmented" role="group" aria-label={label}>
      {options.map(([option, text]) => (
        <button type="button" key={option} aria-pressed={option === value} onClick={() => onChange(option)}>
          {text}
        </button>
      ))}
    </div>
  );
}
