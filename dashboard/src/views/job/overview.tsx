// The first look at a job: its curves, where the time of every rank goes, and what is next.

import { useEffect, useMemo, useState } from "preact/hooks";
import { getHeatMap, getNext, getSeries, getTimeline } from "../../api/client.ts";
import type { Series } from "../../api/types.ts";
import { DEFAULT_HEAT, HeatMapChart, type HeatSettings } from "../../charts/heat_map.tsx";
import { LineChart } from "../../charts/line_chart.tsx";
import { accuracyText, aucText, humanSeconds, lossText, short, shortPercent, stepsPerSecond } from "../../format/numbers.ts";
import { columnsFor, partsOf } from "../../model/heatmap.ts";
import { nothingNext } from "../../model/jobs.ts";
import { memberName } from "../../model/members.ts";
import { jobHref } from "../../model/route.ts";
import { alignLines, evaluationsOf, flagsOf, lossOf, pointsOf, type Axis, type Flag, type Line } from "../../model/series.ts";
import { replaceAddress } from "../../state/app.ts";
import { useFollow, useResource, useThrottled } from "../../state/resource.ts";
import { Empty, ErrorBox, Loaded, Loading, Segmented } from "../../components/common.tsx";
import type { TabProps } from "./tab.ts";

const POINTS = 1000;
const SERIES_INTERVAL = 1500;
const HEAT_INTERVAL = 4000;
const FIRST_INTERVAL = 500; // as long as nothing is there to be seen

function Charts({
  series,
  axis,
  flags,
  log,
  trains,
}: {
  series: Series;
  axis: Axis;
  flags: readonly Flag[];
  log: boolean;
  trains: boolean;
}) {
  const charts = useMemo(() => {
    const loss = lossOf(series, axis);
    const hasAuc = (series.evaluations ?? []).some((each) => each.auc !== undefined);
    const quality = alignLines([evaluationsOf(series, hasAuc ? "auc" : "accuracy", axis)]);
    const rate = alignLines([pointsOf(series, "learningRate", axis)]);
    const speed = alignLines([pointsOf(series, "stepsPerSecond", axis)]);
    const tested = loss.test.some((value) => value !== null);
    return {
      hasAuc,
      loss: {
        x: loss.x,
        lines: [
          { name: "training", values: loss.training, tone: 1 as const },
          ...(tested ? [{ name: "test", values: loss.test, tone: 2 as const, points: true }] : []),
        ],
      },
      quality: { x: quality.x, lines: [{ name: hasAuc ? "AUC" : "accuracy", values: quality.lines[0]!, tone: 2 as const, points: true }] },
      speed: { x: speed.x, lines: [{ name: "steps/s", values: speed.lines[0]!, tone: 1 as const }] },
      rate: { x: rate.x, lines: [{ name: "learning rate", values: rate.lines[0]!, tone: 3 as const }] },
    };
  }, [series, axis]);
  const shared = { axis, flags, sync: "job" };
  // A program of its own tells what it has; of our own training an empty chart says that nothing has come yet.
  const isShown = (chart: { lines: readonly { values: Line }[] }) =>
    trains || chart.lines.some(({ values }) => values.some((y) => y !== null));
  if (![charts.loss, charts.quality, charts.speed, charts.rate].some(isShown))
    return (
      <Empty title="No steps yet">
        <p class="dim">
          This job runs a program of its own (no spec.training). What it tells of its steps is drawn here; it has told nothing so far. Its
          logs have what it prints.
        </p>
      </Empty>
    );
  return (
    <div class="charts">
      {isShown(charts.loss) && <LineChart title="Loss" format={lossText} log={log} {...charts.loss} {...shared} />}
      {isShown(charts.quality) && (
        <LineChart
          title={charts.hasAuc ? "AUC" : "Accuracy"}
          format={charts.hasAuc ? aucText : accuracyText}
          tick={charts.hasAuc ? short : shortPercent}
          {...charts.quality}
          {...shared}
        />
      )}
      {isShown(charts.speed) && <LineChart title="Steps/s" fromZero format={stepsPerSecond} {...charts.speed} {...shared} />}
      {isShown(charts.rate) && <LineChart title="Learning rate" format={short} {...charts.rate} {...shared} />}
    </div>
  );
}

type Range = [number, number];

function zoomOf(params: URLSearchParams): Range | null {
  const match = /^(\d+)-(\d+)$/.exec(params.get("steps") ?? "");
  return match ? [Number(match[1]), Number(match[2])] : null;
}

function useHeatSettings(job: TabProps["job"], params: URLSearchParams) {
  const settings: HeatSettings = {
    part: params.get("part") ?? DEFAULT_HEAT.part,
    relative: params.get("color") !== "ms",
    order: params.get("rows") === "slowest" ? "slowest" : params.get("rows") === "node" ? "node" : "rank",
  };
  const write = (next: HeatSettings, zoom: Range | null) => {
    const fresh = new URLSearchParams(params);
    const put = (key: string, value: string, unless: string) => (value === unless ? fresh.delete(key) : fresh.set(key, value));
    put("part", next.part, DEFAULT_HEAT.part);
    put("color", next.relative ? "x" : "ms", "x");
    put("rows", next.order, "rank");
    put("steps", zoom ? zoom.join("-") : "", "");
    replaceAddress(jobHref(job.row.namespace, job.row.name, "overview", fresh));
  };
  return { settings, write };
}

function Heat({ job, path, params, newer }: TabProps) {
  const { settings, write } = useHeatSettings(job, params);
  const zoom = zoomOf(params);
  const [before, setBefore] = useState<(Range | null)[]>([]);
  const [columns, setColumns] = useState(400);
  const heat = useResource((signal) => getHeatMap(path, columns, zoom, signal), [path, columns, zoom]);
  const soon = useThrottled(heat.reload, heat.data?.steps.length ? HEAT_INTERVAL : FIRST_INTERVAL);
  useEffect(
    () =>
      newer.watch(() => {
        if (!zoom) soon();
      }),
    [newer, zoom === null],
  );
  if (heat.data === null) return heat.error ? <ErrorBox error={heat.error} retry={heat.reload} /> : <Loading what="the heat map" />;
  const map = heat.data;
  if (map.members.length === 0 || map.steps.length === 0)
    return (
      <Empty title="No step times yet">
        <p class="dim">
          {job.object.spec?.training === undefined
            ? "A program of its own (no spec.training) has them where it tells of its steps."
            : "They come with the members' first heartbeats."}
        </p>
      </Empty>
    );
  const shown = partsOf(map).includes(settings.part) ? settings : { ...settings, part: partsOf(map)[0] ?? "step" };
  return (
    <HeatMapChart
      map={map}
      settings={shown}
      slowNow={(job.object.status?.stragglers ?? []).filter((each) => each.kind !== "AllSlow").map(memberName)}
      onSettings={(next) => write(next, zoom)}
      onZoom={(range) => {
        setBefore([...before, zoom]);
        write(settings, range);
      }}
      onBack={
        zoom === null
          ? null
          : () => {
              write(settings, before[before.length - 1] ?? null);
              setBefore(before.slice(0, -1));
            }
      }
      onWidth={(width) => setColumns(Math.ceil(columnsFor(width) / 50) * 50)}
    />
  );
}

function Next({ job, path }: TabProps) {
  const next = useResource((signal) => getNext(path, signal), [path]);
  useFollow(next.reload, job.version);
  return (
    <section class="panel next" aria-label="What is next">
      <h2>What is next</h2>
      <Loaded resource={next} what="what is next">
        {({ decisions }) =>
          decisions.length === 0 ? (
            <p class="dim">{nothingNext(job.row)}</p>
          ) : (
            <ul>
              {decisions.map((each) => (
                <li key={each.text}>
                  {each.text}
                  {each.in !== null && each.in !== undefined && <b> in {humanSeconds(each.in)}</b>}
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </section>
  );
}

export function Overview(props: TabProps) {
  const { job, path, params, newer } = props;
  const axis: Axis = params.get("x") === "time" ? "seconds" : "step";
  const log = params.get("scale") === "log";
  const trains = job.object.spec?.training !== undefined;
  const series = useResource((signal) => getSeries(path, POINTS, signal), [path]);
  const timeline = useResource((signal) => getTimeline(path, signal), [path]);
  const soon = useThrottled(series.reload, series.data?.step.length ? SERIES_INTERVAL : FIRST_INTERVAL);
  useEffect(() => newer.watch(soon), [newer, soon]);
  useFollow(timeline.reload, job.version);
  const flags = useMemo(
    () => (series.data ? flagsOf(timeline.data?.items ?? [], series.data, axis) : []),
    [timeline.data, series.data, axis],
  );
  const set = (key: string, value: string | null) => {
    const fresh = new URLSearchParams(params);
    if (value) fresh.set(key, value);
    else fresh.delete(key);
    replaceAddress(jobHref(job.row.namespace, job.row.name, "overview", fresh));
  };
  return (
    <>
      <section class="panel panel-curves" aria-label="Curves">
        <div class="panel-tools">
          <Segmented
            label="Over"
            value={axis}
            options={[
              ["step", "Steps"],
              ["seconds", "Time"],
            ]}
            onChange={(value) => set("x", value === "seconds" ? "time" : null)}
          />
          <Segmented
            label="Scale of the loss"
            value={log ? "log" : "linear"}
            options={[
              ["linear", "Linear"],
              ["log", "Log"],
            ]}
            onChange={(value) => set("scale", value === "log" ? "log" : null)}
          />
          {flags.length > 0 && (
            <span class="dim flag-note">
              <i class="flag-swatch" aria-hidden="true" />
              losses, restarts and stragglers
            </span>
          )}
        </div>
        <Loaded resource={series} what="the curves">
          {(data) => <Charts series={data} axis={axis} flags={flags} log={log} trains={trains} />}
        </Loaded>
      </section>
      <section class="panel" aria-label="Step time by rank">
        <Heat {...props} />
      </section>
      <Next {...props} />
    </>
  );
}
