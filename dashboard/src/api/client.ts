// Requests to /api/v1. An answer that is none becomes an ApiError, with the server's code, words and help.

import type { HeatMap, Job, JobEvent, JobList, Log, PastList, Decision, Series, Session, TimelineItem } from "./types.ts";
import { credentials, forgetSecret, keepToken, keepWord, secret } from "./word.ts";

export const BASE = "/api/v1";

export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly help: string;

  constructor(status: number, code: string, message: string, help = "") {
    super(message);
    this.status = status;
    this.code = code;
    this.help = help;
  }
}

export function errorOf(status: number, body: string): ApiError {
  try {
    const { error } = JSON.parse(body) as { error?: { code?: string; message?: string; help?: string } };
    if (error?.message) return new ApiError(status, error.code ?? "Error", error.message, error.help ?? "");
  } catch {
    // A proxy's page, or half an answer: the status says enough.
  }
  return new ApiError(status, status === 403 ? "Forbidden" : "Error", `the server answered with status ${status}`);
}

let clockAhead = 0; // milliseconds that the server's clock is ahead of this browser's
let onUnauthenticated = () => {};

export function whenUnauthenticated(then: () => void): void {
  onUnauthenticated = then;
}

// The time by the server's clock, which all times that it tells are of.
export function serverNow(): number {
  return Date.now() + clockAhead;
}

function noteClock(response: Response): void {
  const date = Date.parse(response.headers.get("Date") ?? "");
  if (Number.isNaN(date)) return;
  const ahead = date - Date.now();
  clockAhead = Math.abs(ahead) > 3000 ? ahead : 0;
}

async function answer(method: string, path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  const sent = secret();
  const headers: Record<string, string> = credentials();
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(BASE + path, {
      method,
      headers,
      credentials: "same-origin",
      cache: "no-store",
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    });
  } catch (failure) {
    if (signal?.aborted) throw failure;
    throw new ApiError(0, "Unreachable", "the server can't be reached", "see whether it still runs; this page tries again by itself");
  }
  noteClock(response);
  if (response.ok) return response;
  const error = errorOf(response.status, await response.text().catch(() => ""));
  const signsIn = method === "POST" && path === "/session"; // whose 401 is about the token
  if (error.status === 401 && !signsIn) {
    forgetSecret(sent);
    onUnauthenticated();
  }
  throw error;
}

async function json<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await answer("GET", path, undefined, signal)).json()) as T;
}

export function jobPath(namespace: string, name: string): string {
  return `/jobs/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
}

export async function signIn(token: string): Promise<Session> {
  const response = await answer("POST", "/session", { token });
  const { csrf, ...session } = (await response.json()) as Session & { csrf?: string };
  if (csrf === undefined) keepToken(token);
  else keepWord(csrf);
  return session;
}

export const getSession = () => json<Session>("/session");
export const getJobs = (signal?: AbortSignal) => json<JobList>("/jobs", signal);
export const getPast = (signal?: AbortSignal) => json<PastList>("/past", signal);
export const getJob = (job: string, signal?: AbortSignal) => json<Job>(job, signal);
export const getSeries = (job: string, points: number, signal?: AbortSignal) => json<Series>(`${job}/series?points=${points}`, signal);
export const getTimeline = (job: string, signal?: AbortSignal) => json<{ items: TimelineItem[] }>(`${job}/timeline`, signal);
export const getEvents = (job: string, signal?: AbortSignal) => json<{ events: JobEvent[] }>(`${job}/events`, signal);
export const getLogs = (job: string, signal?: AbortSignal) => json<{ logs: Log[] }>(`${job}/logs`, signal);
export const getNext = (job: string, signal?: AbortSignal) => json<{ decisions: Decision[] }>(`${job}/next`, signal);
export const getYaml = async (job: string, signal?: AbortSignal) => (await answer("GET", `${job}/yaml`, undefined, signal)).text();

export function getHeatMap(job: string, columns: number, range: [number, number] | null, signal?: AbortSignal): Promise<HeatMap> {
  const part = range ? `&from=${range[0]}&to=${range[1]}` : "";
  return json<HeatMap>(`${job}/heatmap?columns=${columns}${part}`, signal);
}

export async function getLog(job: string, pod: string, container: string, tail: number, signal?: AbortSignal): Promise<string> {
  return (
    await answer("GET", `${job}/logs/${encodeURIComponent(pod)}?tail=${tail}&container=${encodeURIComponent(container)}`, undefined, signal)
  ).text();
}

export async function act(job: string, action: string, body?: unknown): Promise<string> {
  const response = action === "delete" ? await answer("DELETE", job, undefined) : await answer("POST", `${job}/${action}`, body ?? {});
  const said = (await response.json().catch(() => ({}))) as { message?: string };
  return said.message ?? "done";
}
