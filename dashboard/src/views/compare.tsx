// Two jobs: their curves over each other, and their figures side by side.

import { useEffect, useMemo } from "preact/hooks";
import { getSeries, jobPath } from "../api/client.ts";
import type { Row, Series } from "../api/types.ts";
import { LineChart } from "../charts/line_chart.tsx";
import * as text from "../format/numbers.ts";
import { betterTime, deltaOf, type Better } from "../model/delta.ts";
import { compareHref, jobHref } from "../model/route.ts";
import { alignLines, bridged, evaluationsOf, pointsOf, type Axis, type Points } from "../model/series.ts";
import { replaceAddress } from "../state/app.ts";
import { useCell } from "../state/cell.ts";
import { hearJobs, jobsState, reloadJobs } from "../state/live.ts";
import { memo } from "../state/memo.ts";
import { useResource, useThrottled, type Resource } from "../state/resource.ts";
import { Empty, ErrorBox, Loading, PhaseChip, Segmented } from "../components/common.tsx";

const POINTS = 1000;
const INTERVAL = 5000;

interface FigureRow {
  name: string;
  value: (row: Row) => number | undefined;
  format: (value: number | undefined) => string;
  better: Better | ((a: Row, b: Row) => Better);
}

const FIGURES: readonly FigureRow[] = [
  { name: "Loss", value: (row) => row.loss, format: text.lossText, better: "less" },
  { name: "Accuracy", value: (row) => row.accuracy, format: text.accuracyText, better: "more" },
  { name: "Samples/s", value: (row) => row.samplesPerSecond, format: text.samplesPerSecond, better: "more" },
  { name: "Steps/s", value: (row) => row.stepsPerSecond, format: text.stepsPerSecond, better: "more" },
  { name: "Goodput", value: (row) => row.goodput, format: text.goodputText, better: "more" },
  { name: "Step", value: (row) => row.step, format: text.withCommas, better: "neither" },
  { name: "Members", value: (row) => row.members, format: (v) => (v === undefined ? text.NONE : String(v)), better: "neither" },
  { name: "Restarts", value: (row) => row.restarts, format: (v) => (v === undefined ? text.NONE : String(v)), better: "less" },
  { name: "Time", value: (row) => row.elapsedSeconds, format: text.humanSeconds, better: betterTime },
];

const collator = new Intl.Collator("en", { numeric: true });
const idOf = (row: Row): string => `${row.namespace}/${row.name}`;

function Figures({ a, b }: { a: Row; b: Row }) {
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label="Figures of both jobs">
      <table class="plain figures-table">
        <thead>
          <tr>
            <th scope="col">Figure</th>
            <th scope="col" class="number">
              <i class="swatch tone-1" aria-hidden="true" />
              {a.name}
            </th>
            <th scope="col" class="number">
              <i class="swatch tone-2" aria-hidden="true" />
              {b.name}
            </th>
            <th scope="col" class="number">
              Second to first
            </th>
          </tr>
        </thead>
        <tbody>
          <tr>
            <th scope="row">Phase</th>
            <td class="number">
              <PhaseChip phase={a.phase} />
            </td>
            <td class="number">
              <PhaseChip phase={b.phase} />
            </td>
            <td />
          </tr>
          {FIGURES.map(({ name, value, format, better }) => {
            const delta = deltaOf(value(a), value(b), typeof better === "string" ? better : better(a, b));
            return (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td class="number">{format(value(a))}</td>
                <td class="number">{format(value(b))}</td>
                <td class={`number delta-${delta.verdict || "none"}`}>
                  {delta.text}
                  {delta.verdict && <span class="dim"> {delta.verdict}</span>}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function Curves({ a, b, names, axis }: { a: Series; b: Series; names: [string, string]; axis: Axis }) {
  const charts = useMemo(() => {
    const pair = (of: (series: Series) => Points, points: boolean) => {
      const { x, lines } = alignLines([of(a), of(b)]);
      return {
        x,
        lines: [
          { name: names[0], values: lines[0]!, tone: 1 as const, points },
          { name: names[1], values: lines[1]!, tone: 2 as const, points },
        ],
      };
    };
    return [
      { title: "Loss", format: text.lossText, ...pair((s) => pointsOf(s, "loss", axis), false) },
      { title: "Accuracy", format: text.accuracyText, tick: text.shortPercent, ...pair((s) => evaluationsOf(s, "accuracy", axis), true) },
      { title: "Samples/s", fromZero: true, format: text.samplesPerSecond, ...pair((s) => pointsOf(s, "samplesPerSecond", axis), false) },
      { title: "Learning rate", format: text.short, ...pair((s) => pointsOf(s, "learningRate", axis), false) },
    ].map((chart) => ({
      ...chart,
      lines: chart.lines.map((line) => ({ ...line, values: chart.title === "Accuracy" ? line.values : bridged(chart.x, line.values) })),
    }));
  }, [a, b, axis, names[0], names[1]]);
  return (
    <div class="charts charts-2">
      {charts.map((chart) => (
        <LineChart key={chart.title} {...chart} axis={axis} sync="compare" height={220} brief />
      ))}
    </div>
  );
}

const Options = memo(function Options({ ids }: { ids: readonly string[] }) {
  return (
    <>
      <option value="">Choose a job…</option>
      {ids.map((id) => (
        <option key={id} value={id}>
          {id}
        </option>
      ))}
    </>
  );
});

function Choice({
  label,
  value,
  ids,
  onChange,
}: {
  label: string;
  value: string;
  ids: readonly string[];
  onChange: (value: string) => void;
}) {
  return (
    <label class="field-line">
      <i class={`swatch tone-${label === "First" ? 1 : 2}`} aria-hidden="true" />
      {label}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        <Options ids={ids} />
      </select>
    </label>
  );
}

function find(rows: Iterable<Row>, id: string): Row | undefined {
  for (const row of rows) if (idOf(row) === id) return row;
  return undefined;
}

// All jobs' names in order: the same list as long as there are the same ones, whatever else changes.
function useIds(rows: Iterable<Row>): readonly string[] {
  const ids = [...rows].map(idOf);
  const key = ids.join("\n");
  return useMemo(() => ids.sort(collator.compare), [key]);
}

function useSeries(row: Row | undefined): Resource<Series | null> {
  const path = row ? jobPath(row.namespace, row.name) : "";
  const series = useResource(async (signal) => (path ? getSeries(path, POINTS, signal) : null), [path]);
  const soon = useThrottled(series.reload, INTERVAL);
  useEffect(() => {
    if (row?.phase === "Running") soon();
  }, [row?.step]);
  return series;
}

export function CompareView({ params }: { params: URLSearchParams }) {
  useEffect(hearJobs, []);
  const state = useCell(jobsState);
  const all = useIds(state.jobs.values());
  const ids: [string, string] = [params.get("a") ?? "", params.get("b") ?? ""];
  const [a, b] = ids.map((id) => find(state.jobs.values(), id)) as [Row | undefined, Row | undefined];
  const first = useSeries(a);
  const second = useSeries(b);
  const axis: Axis = params.get("x") === "time" ? "seconds" : "step";
  const go = (x: string, y: string, over: Axis) =>
    replaceAddress(compareHref(x, y) + (over === "seconds" ? `${x || y ? "&" : "?"}x=time` : ""));
  if (!state.loaded) return state.error ? <ErrorBox error={state.error} retry={reloadJobs} /> : <Loading what="jobs" />;
  const error = first.error ?? second.error;
  return (
    <div class="compare">
      <h1>Compare two jobs</h1>
      <div class="panel-tools">
        <Choice label="First" value={ids[0]} ids={all} onChange={(id) => go(id, ids[1], axis)} />
        <Choice label="Second" value={ids[1]} ids={all} onChange={(id) => go(ids[0], id, axis)} />
        <Segmented
          label="Over"
          value={axis}
          options={[
            ["step", "Steps"],
            ["seconds", "Time"],
          ]}
          onChange={(over) => go(ids[0], ids[1], over)}
        />
        <span class="gap" />
        {a && <a href={jobHref(a.namespace, a.name)}>{a.name}</a>}
        {b && <a href={jobHref(b.namespace, b.name)}>{b.name}</a>}
      </div>
      {error && (
        <ErrorBox
          error={error}
          retry={() => {
            first.reload();
            second.reload();
          }}
        />
      )}
      {!a || !b ? (
        <Empty title="Choose two jobs">
          <p class="dim">Their curves are drawn over each other. The address of this page holds the choice.</p>
        </Empty>
      ) : (
        <div class="compare-grid">
          <section class="panel" aria-label="Key figures">
            <Figures a={a} b={b} />
          </section>
          {first.data && second.data ? (
            <section class="panel" aria-label="Curves">
              <Curves a={first.data} b={second.data} names={[a.name, b.name]} axis={axis} />
            </section>
          ) : (
            <Loading what="the curves" />
          )}
        </div>
      )}
    </div>
  );
}
