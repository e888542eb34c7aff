// What the whole page goes by: the session, the address, the connection, the time, and what has just happened.

import { ApiError, getSession, serverNow, signIn, whenUnauthenticated } from "../api/client.ts";
import type { Session } from "../api/types.ts";
import { secret } from "../api/word.ts";
import { parseRoute, tokenIn, type Route } from "../model/route.ts";
import { Cell } from "./cell.ts";

export type SessionState =
  | { kind: "asking" }
  | { kind: "in"; session: Session }
  | { kind: "out"; error: ApiError | null }
  | { kind: "unreachable"; error: ApiError };

export const session = new Cell<SessionState>({ kind: "asking" });
export const route = new Cell<Route>(parseRoute(location.hash));
export const now = new Cell(serverNow());
export const connected = new Cell(true);

export interface Toast {
  id: number;
  kind: "done" | "failed";
  text: string;
  help: string;
}
export const toasts = new Cell<readonly Toast[]>([]);

let nextToast = 0;
export function toast(kind: Toast["kind"], text: string, help = ""): void {
  const id = nextToast++;
  toasts.value = [...toasts.value.slice(-3), { id, kind, text, help }];
  if (kind === "done") setTimeout(() => dismissToast(id), 6000);
}

export function dismissToast(id: number): void {
  toasts.value = toasts.value.filter((each) => each.id !== id);
}

export function errorFrom(failure: unknown): ApiError {
  return failure instanceof ApiError ? failure : new ApiError(0, "Error", failure instanceof Error ? failure.message : String(failure));
}

function begin(signedIn: Session): void {
  document.documentElement.dataset["place"] = signedIn.place;
  session.value = { kind: "in", session: signedIn };
}

export async function enter(token: string): Promise<void> {
  try {
    begin(await signIn(token));
  } catch (failure) {
    session.value = { kind: "out", error: errorFrom(failure) };
  }
}

export async function askSession(): Promise<void> {
  if (secret() === "") {
    session.value = { kind: "out", error: null };
    return;
  }
  try {
    begin(await getSession());
  } catch (failure) {
    const error = errorFrom(failure);
    if (error.status === 401) session.value = { kind: "out", error: null };
    else if (session.value.kind !== "in") session.value = { kind: "unreachable", error };
  }
}

let retry: ReturnType<typeof setTimeout> | undefined;
export async function askSessionUntilThere(): Promise<void> {
  clearTimeout(retry);
  await askSession();
  if (session.value.kind === "unreachable") retry = setTimeout(() => void askSessionUntilThere(), 2000);
}

// Changes the parameters of the address in place: each key stroke of a search is no step of the browser's history.
export function replaceAddress(href: string): void {
  history.replaceState(null, "", href);
  route.value = parseRoute(location.hash);
}

export function startApp(): void {
  whenUnauthenticated(() => {
    if (session.value.kind === "in") session.value = { kind: "out", error: null };
  });
  const takeToken = (): boolean => {
    const token = tokenIn(location.hash);
    if (token === null) return false;
    history.replaceState(null, "", location.pathname);
    void enter(token);
    return true;
  };
  addEventListener("hashchange", () => {
    takeToken();
    route.value = parseRoute(location.hash);
  });
  if (!takeToken()) void askSessionUntilThere();
  route.value = parseRoute(location.hash);
  setInterval(() => {
    if (!document.hidden) now.value = serverNow();
  }, 1000);
}
