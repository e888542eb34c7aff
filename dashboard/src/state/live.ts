// The page's one stream. Views say what they want to hear of; the stream is opened anew when that changes.

import { BASE, getJobs, type ApiError } from "../api/client.ts";
import { openStream, type Stream } from "../api/stream.ts";
import type { Job, JobList } from "../api/types.ts";
import { applyDelta, fromList, type Jobs, type JobsDelta } from "../model/jobs.ts";
import { askSession, connected, errorFrom } from "./app.ts";
import { Cell, oncePerFrame } from "./cell.ts";

export interface JobsState {
  jobs: Jobs;
  version: number; // counts changes; the map itself stays the same
  loaded: boolean;
  leftOut: readonly string[];
  error: ApiError | null;
}

export const jobsState = new Cell<JobsState>({ jobs: new Map(), version: 0, loaded: false, leftOut: [], error: null });

let jobs: Jobs = new Map();
let current: JobsState = jobsState.value;
const publish = oncePerFrame(() => {
  jobsState.value = { ...current, jobs, version: jobsState.value.version + 1 };
});

export interface JobHandlers {
  onJob?(job: Job | null): void; // null: it has been deleted
  onSeries?(from: number): void;
}

let stream: Stream | null = null;

function open(query: string, handlers: JobHandlers): () => void {
  stream?.close();
  stream = openStream(`${BASE}/stream?${query}`, {
    handlers: {
      jobs: (data) => {
        const delta = data as JobsDelta;
        applyDelta(jobs, delta);
        current = { ...current, loaded: true, leftOut: delta.leftOut ?? current.leftOut, error: null };
        publish();
      },
      job: (data) => handlers.onJob?.((data as { removed?: boolean }).removed ? null : (data as Job)),
      series: (data) => handlers.onSeries?.((data as { from: number }).from),
    },
    onState: (up) => {
      connected.value = up;
    },
    onRefused: () => void askSession(),
  });
  const opened = stream;
  return () => {
    opened.close();
    if (stream === opened) {
      stream = null;
      connected.value = true;
    }
  };
}

const RETRY = 4000;

let loadAgain = () => {};

// For those who do not want to wait.
export const reloadJobs = (): void => loadAgain();

// The list by itself comes first: for the first picture, and its errors. The stream follows where there is a list.
export function hearJobs(): () => void {
  let close: (() => void) | null = null;
  let over = false;
  let again: ReturnType<typeof setTimeout> | undefined;
  const begin = async () => {
    clearTimeout(again);
    await loadJobs();
    if (over || close) return;
    if (!current.error) close = open("jobs=1", {});
    else if (current.error.code !== "Forbidden") again = setTimeout(() => void begin(), RETRY);
  };
  loadAgain = () => void begin();
  void begin();
  return () => {
    over = true;
    clearTimeout(again);
    close?.();
  };
}

export function hearJob(job: string, handlers: JobHandlers): () => void {
  return open(`job=${encodeURIComponent(job)}`, handlers);
}

// The list is asked for at once, beside the session: where there is a word, there is one most often.
let early: Promise<JobList> | null = null;

export function loadEarly(): void {
  early = getJobs();
  early.catch(() => {
    early = null;
  });
}

async function loadJobs(): Promise<void> {
  try {
    const list = await (early ?? getJobs());
    early = null;
    jobs = fromList(list);
    current = { ...current, loaded: true, leftOut: list.leftOut ?? [], error: null };
  } catch (failure) {
    current = { ...current, error: errorFrom(failure) };
  }
  publish();
}
