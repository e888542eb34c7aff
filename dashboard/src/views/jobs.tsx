// The list of jobs. A thousand that all change cost what the visible ones do: rows outside the window are not drawn, and a row whose data is the
// same object is not drawn again.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { getPast } from "../api/client.ts";
import type { PastList, Phase, Row, Session } from "../api/types.ts";
import * as text from "../format/numbers.ts";
import type { Jobs } from "../model/jobs.ts";
import { jobsHref, paramsOf, queryOf, rowHref } from "../model/route.ts";
import {
  countRows,
  holdOrder,
  needsLook,
  note,
  PHASES,
  selectRows,
  visibleRange,
  type Counts,
  type Query,
  type SortKey,
} from "../model/rows.ts";
import { replaceAddress } from "../state/app.ts";
import { useCell } from "../state/cell.ts";
import { hearJobs, jobsState, reloadJobs } from "../state/live.ts";
import { memo } from "../state/memo.ts";
import { useFollow, useResource } from "../state/resource.ts";
import { Age, Bar, Empty, ErrorBox, Loading, PhaseChip } from "../components/common.tsx";
import { Icon, phaseIcon } from "../components/icons.tsx";

const COLUMNS: readonly (readonly [SortKey, string, string])[] = [
  ["name", "Job", ""],
  ["phase", "Phase", ""],
  ["progress", "Progress", ""],
  ["etaSeconds", "ETA", "number"],
  ["samplesPerSecond", "Samples/s", "number"],
  ["loss", "Loss", "number"],
  ["accuracy", "Accuracy", "number"],
  ["goodput", "Goodput", "number"],
  ["ready", "Ready", "number"],
  ["restarts", "Restarts", "number"],
  ["created", "Age", "number"],
  ["note", "Note", ""],
];

const NO_PAST: PastList = { jobs: [], more: false };

function toneOf(row: Row): string {
  if (row.phase === "Failed") return "bar-failed";
  if (row.phase === "Succeeded") return "bar-done";
  return row.phase === "Running" ? "" : "bar-idle";
}

function stepText(row: Row): string {
  return row.steps ? `step ${text.withCommas(row.step)} of ${text.withCommas(row.steps)}` : "its length is not known yet";
}

const JobRow = memo(function JobRow({ row, index, top }: { row: Row; index: number; top: number }) {
  const words = note(row);
  const ended = row.deleted !== undefined || row.phase === "Succeeded" || row.phase === "Failed" || row.phase === "Stopped";
  return (
    <div
      role="row"
      class={`row ${needsLook(row) ? "row-look" : ""} ${row.deleted ? "row-deleted" : ""}`}
      aria-rowindex={index + 2}
      style={{ top: `${top}px` }}
    >
      <div role="cell" class="c-name">
        <a href={rowHref(row)} title={`${row.namespace}/${row.name}`}>
          <span class="dim namespace">{row.namespace}/</span>
          {row.name}
        </a>
        {row.deleted && <span class="tag tag-deleted">deleted</span>}
        {row.model && <span class="tag">{row.model}</span>}
      </div>
      <div role="cell" class="c-phase">
        <PhaseChip phase={row.phase} />
      </div>
      <div role="cell" class="c-progress" title={stepText(row)}>
        <Bar share={row.progress} label={`Progress of ${row.name}`} tone={toneOf(row)} />
        <span>{text.progressText(row.progress)}</span>
      </div>
      <div role="cell" class="c-eta number">
        {ended ? text.NONE : text.humanSeconds(row.etaSeconds)}
      </div>
      <div role="cell" class="c-samples number">
        {text.samplesPerSecond(row.samplesPerSecond)}
      </div>
      <div role="cell" class="c-loss number">
        {text.lossText(row.loss)}
      </div>
      <div role="cell" class="c-accuracy number">
        {text.accuracyText(row.accuracy)}
      </div>
      <div role="cell" class="c-goodput number">
        {text.goodputText(row.goodput)}
      </div>
      <div
        role="cell"
        class={`c-ready number ${ended || row.phase === "Suspended" ? "faint" : (row.ready ?? 0) < (row.members ?? 0) ? "short" : ""}`}
      >
        {row.members === undefined ? text.NONE : `${row.ready ?? 0}/${row.members}`}
      </div>
      <div role="cell" class={`c-restarts number ${(row.restarts ?? 0) === 0 ? "faint" : ""}`}>
        {row.restarts ?? text.NONE}
      </div>
      <div role="cell" class="c-age number">
        <Age time={row.created} />
      </div>
      <div role="cell" class="c-note" title={words}>
        {(row.stragglers ?? 0) > 0 && row.phase === "Running" && <Icon name="warning" size={13} />}
        <span>{words}</span>
      </div>
    </div>
  );
});

function Head({ query, onSort }: { query: Query; onSort: (key: SortKey) => void }) {
  return (
    <div role="row" class="row row-head" aria-rowindex={1}>
      {COLUMNS.map(([key, title, kind]) => {
        const sorted = query.sort === key;
        return (
          <div
            role="columnheader"
            key={key}
            class={`${kind} c-${key}`}
            aria-sort={sorted ? (query.descending ? "descending" : "ascending") : "none"}
          >
            <button type="button" onClick={() => onSort(key)} class={sorted ? "sorted" : ""}>
              {title}
              <span aria-hidden="true" class="arrow">
                {sorted ? (query.descending ? "↓" : "↑") : ""}
              </span>
            </button>
          </div>
        );
      })}
    </div>
  );
}

function useRowHeight(): number {
  const narrow = useMemo(() => matchMedia("(max-width: 720px)"), []);
  const [height, setHeight] = useState(narrow.matches ? 76 : 34);
  useEffect(() => {
    const change = () => setHeight(narrow.matches ? 76 : 34);
    narrow.addEventListener("change", change);
    return () => narrow.removeEventListener("change", change);
  }, [narrow]);
  return height;
}

function Table({ rows, query, onSort }: { rows: Row[]; query: Query; onSort: (key: SortKey) => void }) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  const rowHeight = useRowHeight();
  const held = useRef<{ query: string; uids: string[] } | null>(null); // the order while somebody points at the rows
  const look = () => {
    const element = box.current;
    if (!element) return;
    const { scrollTop: top, clientHeight: height } = element;
    setView((old) => (old.top === top && old.height === height ? old : { top, height }));
  };
  useLayoutEffect(() => {
    look();
    const observer = new ResizeObserver(look);
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  const queryKey = paramsOf(query).toString();
  const shown = held.current?.query === queryKey ? holdOrder(rows, held.current.uids) : rows;
  const { first, last } = visibleRange(view.top, view.height, rowHeight, shown.length);
  const latest = useRef(shown);
  latest.current = shown;
  const hold = () => {
    held.current = { query: queryKey, uids: latest.current.map((row) => row.uid) };
  };
  const release = () => {
    held.current = null;
  };
  return (
    <div class="table" role="table" aria-label="Jobs" aria-rowcount={shown.length + 1} ref={box} onScroll={look} tabIndex={0}>
      <div role="rowgroup" class="table-head">
        <Head query={query} onSort={onSort} />
      </div>
      <div
        role="rowgroup"
        class="table-body"
        style={{ height: `${shown.length * rowHeight}px` }}
        onPointerEnter={hold}
        onPointerLeave={release}
      >
        {shown.slice(first, last).map((row, i) => (
          <JobRow key={row.uid} row={row} index={first + i} top={(first + i) * rowHeight} />
        ))}
      </div>
    </div>
  );
}

function Chips({ counts, query, onChange }: { counts: Counts; query: Query; onChange: (query: Query) => void }) {
  const toggle = (phase: Phase) => {
    const phases = new Set(query.phases);
    if (!phases.delete(phase)) phases.add(phase);
    onChange({ ...query, phases });
  };
  const all = query.phases.size === 0 && !query.attention;
  return (
    <div class="chips" role="group" aria-label="Show jobs by phase">
      <button type="button" class="chip" aria-pressed={all} onClick={() => onChange({ ...query, phases: new Set(), attention: false })}>
        All <b>{text.withCommas(counts.all)}</b>
      </button>
      <button
        type="button"
        class="chip chip-look"
        aria-pressed={query.attention}
        onClick={() => onChange({ ...query, attention: !query.attention })}
      >
        <Icon name="warning" size={13} />
        Needs a look <b>{text.withCommas(counts.attention)}</b>
      </button>
      {PHASES.filter((phase) => counts.phases.has(phase) || query.phases.has(phase)).map((phase) => (
        <button
          type="button"
          key={phase}
          class={`chip phase-${phase.toLowerCase()}`}
          aria-pressed={query.phases.has(phase)}
          onClick={() => toggle(phase)}
        >
          <Icon name={phaseIcon(phase)} size={13} />
          {phase} <b>{text.withCommas(counts.phases.get(phase) ?? 0)}</b>
        </button>
      ))}
    </div>
  );
}

function useSlashKey(input: { current: HTMLInputElement | null }): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return;
      event.preventDefault();
      input.current?.focus();
      input.current?.select();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

// What the history has, where it is asked for: loaded again when a job has gone.
function usePast(session: Session, wanted: boolean, jobs: Jobs): { rows: Row[]; note: string } {
  const asked = wanted && session.history !== undefined;
  const loaded = useResource((signal) => (asked ? getPast(signal) : Promise.resolve(NO_PAST)), [asked]);
  useFollow(loaded.reload, `${jobs.size}`);
  const list = asked ? (loaded.data ?? NO_PAST) : NO_PAST;
  const rows = useMemo(() => list.jobs.filter((row) => !jobs.has(row.uid)), [list, jobs.size]);
  if (asked && loaded.error) return { rows, note: `Deleted jobs can't be listed: ${loaded.error.message}` };
  return { rows, note: list.more ? "There are more deleted jobs than are listed: these are the latest." : "" };
}

export function JobsView({ params, session }: { params: URLSearchParams; session: Session }) {
  useEffect(hearJobs, []);
  const state = useCell(jobsState);
  const query = useMemo(() => queryOf(params), [params]);
  const search = useRef<HTMLInputElement>(null);
  useSlashKey(search);
  const past = usePast(session, query.deleted, state.jobs);
  const all = useMemo(() => [...state.jobs.values(), ...past.rows], [state, past.rows]);
  const counts = useMemo(() => countRows(all), [all]);
  const rows = useMemo(() => selectRows(all, query), [all, query]);
  const change = (next: Query) => replaceAddress(jobsHref(paramsOf(next)));
  const sort = (key: SortKey) =>
    change({
      ...query,
      sort: key,
      descending: query.sort === key ? !query.descending : key !== "name" && key !== "phase" && key !== "etaSeconds",
    });
  if (!state.loaded) return state.error ? <ErrorBox error={state.error} retry={reloadJobs} /> : <Loading what="jobs" />;
  const limited = session.namespaces;
  return (
    <div class="jobs">
      <h1 class="sr-only">Jobs</h1>
      <div class="toolbar">
        <label class="search">
          <Icon name="search" size={14} />
          <span class="sr-only">Search jobs</span>
          <input
            ref={search}
            type="search"
            placeholder="Search name, model, reason…"
            value={query.text}
            spellcheck={false}
            onInput={(event) => change({ ...query, text: event.currentTarget.value })}
            onKeyDown={(event) => {
              if (event.key === "Escape") event.currentTarget.blur();
            }}
          />
          <kbd aria-hidden="true">/</kbd>
        </label>
        {counts.namespaces.length > 1 && (
          <select
            aria-label="Namespace"
            value={query.namespace}
            onChange={(event) => change({ ...query, namespace: event.currentTarget.value })}
          >
            <option value="">All namespaces</option>
            {counts.namespaces.map((namespace) => (
              <option key={namespace} value={namespace}>
                {namespace}
              </option>
            ))}
          </select>
        )}
        <Chips counts={counts} query={query} onChange={change} />
        {session.history && (
          <button type="button" class="chip" aria-pressed={query.deleted} onClick={() => change({ ...query, deleted: !query.deleted })}>
            Deleted {query.deleted && <b>{text.withCommas(past.rows.length)}</b>}
          </button>
        )}
        <span class="shown dim" role="status">
          {rows.length === counts.all ? "" : `${text.withCommas(rows.length)} of ${text.withCommas(counts.all)}`}
        </span>
      </div>
      {state.error && (
        <p class="stale" role="status">
          Not up to date: {state.error.message}
        </p>
      )}
      {past.note && (
        <p class="stale" role="status">
          {past.note}
        </p>
      )}
      {state.leftOut.length > 0 && (
        <details class="left-out">
          <summary>{state.leftOut.length} left out</summary>
          <ul>
            {state.leftOut.map((each) => (
              <li key={each}>{each}</li>
            ))}
          </ul>
        </details>
      )}
      {counts.all === 0 ? (
        <Empty title="No jobs yet">
          <p>
            {session.place === "Local" ? (
              <>
                Start one: <code>paceline run job.yaml</code>
              </>
            ) : (
              <>
                Start one: <code>kubectl apply -f job.yaml</code>
              </>
            )}
          </p>
          {limited && <p class="dim">You may see {limited.length === 0 ? "no namespace" : limited.join(", ")}.</p>}
        </Empty>
      ) : rows.length === 0 ? (
        <Empty title="No job fits">
          <p>
            <button type="button" class="button" onClick={() => replaceAddress(jobsHref())}>
              Show all {text.withCommas(counts.all)}
            </button>
          </p>
        </Empty>
      ) : (
        <Table rows={rows} query={query} onSort={sort} />
      )}
    </div>
  );
}
