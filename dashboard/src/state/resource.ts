// Something that a view loads: it keeps the earlier answer while the next one is on its way, and one request at a time.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "../api/client.ts";
import { errorFrom } from "./app.ts";

export interface Resource<T> {
  data: T | null;
  error: ApiError | null;
  loading: boolean;
  reload(): void;
}

const RETRY = 4000;

// The server was away, or has too much to do: the next try may work without anybody's doing.
const mayPass = (error: ApiError): boolean => error.status === 0 || error.status === 429 || error.status >= 500;

export function useResource<T>(load: (signal: AbortSignal) => Promise<T>, deps: readonly unknown[]): Resource<T> {
  const [state, setState] = useState<{ data: T | null; error: ApiError | null; loading: boolean }>({
    data: null,
    error: null,
    loading: true,
  });
  const running = useRef<AbortController | null>(null);
  const again = useRef(false);
  const later = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const loader = useRef(load);
  loader.current = load;
  const key = deps.map(String).join("\u0000");
  const keyNow = useRef(key);
  keyNow.current = key;

  const start = useCallback((fresh: boolean) => {
    if (running.current && !fresh) {
      again.current = true;
      return;
    }
    running.current?.abort();
    const control = new AbortController();
    running.current = control;
    const settle = (next: (old: { data: T | null }) => { data: T | null; error: ApiError | null; loading: boolean }) => {
      if (running.current !== control) return;
      running.current = null;
      setState(next);
      clearTimeout(later.current);
      if (again.current) {
        again.current = false;
        start(false);
      }
    };
    loader.current(control.signal).then(
      (data) => settle(() => ({ data, error: null, loading: false })),
      (failure) => {
        const error = errorFrom(failure);
        settle((old) => ({ data: old.data, error, loading: false }));
        if (!control.signal.aborted && mayPass(error)) later.current = setTimeout(() => start(false), RETRY);
      },
    );
  }, []);

  useEffect(() => {
    start(true);
    return () => {
      running.current?.abort();
      running.current = null;
      again.current = false;
      clearTimeout(later.current);
    };
  }, [key]);

  return { ...state, reload: useCallback(() => start(false), [start]) };
}

// Calls `then` now and then: at most once in `interval` milliseconds, however often it is asked for, and not while the tab is hidden.
export function useThrottled(then: () => void, interval: number): () => void {
  const latest = useRef(then);
  latest.current = then;
  const last = useRef(0);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  return useCallback(() => {
    if (timer.current !== undefined) return;
    const wait = Math.max(0, last.current + interval - performance.now());
    timer.current = setTimeout(() => {
      timer.current = undefined;
      last.current = performance.now();
      if (!document.hidden) latest.current();
    }, wait);
  }, [interval]);
}

// Loads again when `version` is another one, at most once in three seconds.
export function useFollow(reload: () => void, version: string): void {
  const first = useRef(true);
  const soon = useThrottled(reload, 3000);
  useEffect(() => {
    if (!first.current) soon();
    first.current = false;
  }, [version, soon]);
}
