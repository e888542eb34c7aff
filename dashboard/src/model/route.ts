// What the address shows. Everything that one may want to send to somebody else stands in it.

import { DEFAULT_QUERY, PHASES, type Query, type SortKey } from "./rows.ts";
import type { Phase, Row } from "../api/types.ts";

export const TABS = ["overview", "members", "timeline", "events", "logs", "yaml"] as const;
export type Tab = (typeof TABS)[number];

export type Route =
  | { view: "jobs"; params: URLSearchParams }
  | { view: "job"; namespace: string; name: string; tab: Tab; params: URLSearchParams }
  | { view: "compare"; params: URLSearchParams }
  | { view: "unknown"; path: string };

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function parseRoute(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  const params = new URLSearchParams(search);
  const parts = path.split("/").filter(Boolean).map(decode);
  if (parts.length === 0) return { view: "jobs", params };
  if (parts[0] === "compare" && parts.length === 1) return { view: "compare", params };
  const tab = parts[3] ?? "overview";
  if (parts[0] === "jobs" && (parts.length === 3 || parts.length === 4) && (TABS as readonly string[]).includes(tab))
    return { view: "job", namespace: parts[1]!, name: parts[2]!, tab: tab as Tab, params };
  return { view: "unknown", path };
}

function withParams(path: string, params?: URLSearchParams): string {
  const text = params?.toString() ?? "";
  return text ? `${path}?${text}` : path;
}

export const jobsHref = (params?: URLSearchParams): string => withParams("#/", params);

export function jobHref(namespace: string, name: string, tab: Tab = "overview", params?: URLSearchParams): string {
  const path = `#/jobs/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  return withParams(tab === "overview" ? path : `${path}/${tab}`, params);
}

// A job is told from earlier and later ones of its name by its uid.
export const exactName = (name: string, uid: string): string => `${name}@${uid}`;
export const isPast = (name: string): boolean => name.includes("@");

export function rowHref(row: Row): string {
  return jobHref(row.namespace, row.deleted === undefined ? row.name : exactName(row.name, row.uid));
}

export function compareHref(a?: string, b?: string): string {
  const params = new URLSearchParams();
  if (a) params.set("a", a);
  if (b) params.set("b", b);
  return withParams("#/compare", params);
}

export function routeHref(route: Route, params: URLSearchParams): string {
  if (route.view === "job") return jobHref(route.namespace, route.name, route.tab, params);
  return withParams(route.view === "compare" ? "#/compare" : "#/", params);
}

// The one-time token of the address that the server prints: `#token=T`.
export function tokenIn(hash: string): string | null {
  const match = /^#token=([^&]+)/.exec(hash);
  return match ? decode(match[1]!) : null;
}

const SORTS: SortKey[] = [
  "name",
  "phase",
  "progress",
  "etaSeconds",
  "samplesPerSecond",
  "loss",
  "accuracy",
  "goodput",
  "ready",
  "restarts",
  "created",
  "note",
];

export function queryOf(params: URLSearchParams): Query {
  const sort = params.get("sort") ?? "";
  const key = sort.replace(/^-/, "") as SortKey;
  const sorted = SORTS.includes(key);
  return {
    text: params.get("q") ?? "",
    phases: new Set((params.get("phase") ?? "").split(",").filter((phase): phase is Phase => (PHASES as string[]).includes(phase))),
    attention: params.get("look") === "1",
    namespace: params.get("ns") ?? "",
    deleted: params.get("deleted") === "1",
    sort: sorted ? key : DEFAULT_QUERY.sort,
    descending: sorted ? sort.startsWith("-") : DEFAULT_QUERY.descending,
  };
}

export function paramsOf(query: Query): URLSearchParams {
  const params = new URLSearchParams();
  if (query.text) params.set("q", query.text);
  if (query.phases.size > 0) params.set("phase", [...query.phases].join(","));
  if (query.attention) params.set("look", "1");
  if (query.namespace) params.set("ns", query.namespace);
  if (query.deleted) params.set("deleted", "1");
  if (query.sort !== DEFAULT_QUERY.sort || query.descending !== DEFAULT_QUERY.descending)
    params.set("sort", (query.descending ? "-" : "") + query.sort);
  return params;
}
