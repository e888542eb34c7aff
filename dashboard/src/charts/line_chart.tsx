// A line chart: uPlot, with the value under the pointer beside its title, and the same in words for those who don't see it.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { humanSeconds, NONE, short, withCommas } from "../format/numbers.ts";
import { samplePlaces, summaryOf, valueAt, type Axis, type Flag, type Line } from "../model/series.ts";
import { useCell } from "../state/cell.ts";
import { dark } from "../state/preferences.ts";

export interface ChartLine {
  name: string;
  values: Line;
  tone: 1 | 2 | 3;
  points?: boolean; // a few measured values: dots, and a line that leaps over what lies between
}

interface Props {
  title: string;
  axis: Axis;
  x: number[];
  lines: ChartLine[];
  format: (value: number | null) => string;
  tick?: (value: number) => string; // of the axis; else as short as can be
  log?: boolean;
  fromZero?: boolean; // a rate: what is a little noise should look like that
  flags?: readonly Flag[];
  sync?: string; // charts with the same word share their cursor
  height?: number;
  brief?: boolean; // the names of the lines stand elsewhere
}

const TABLE_ROWS = 12;

// Steps are whole numbers.
const WHOLE = Array.from({ length: 14 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

function cssColor(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function optionsFor(
  props: Props,
  width: number,
  onCursor: (place: number | null) => void,
  flags: { current: readonly Flag[] },
): uPlot.Options {
  const grid = { stroke: cssColor("--grid"), width: 1 };
  const axis = { stroke: cssColor("--dim"), grid, ticks: { show: false }, font: "11px system-ui, sans-serif", gap: 4 };
  const xText = (value: number) => (props.axis === "step" ? short(value) : humanSeconds(value));
  return {
    width,
    height: props.height ?? 150,
    padding: [8, 20, 0, 0],
    legend: { show: false },
    cursor: {
      points: { size: 6 },
      drag: { x: true, y: false, setScale: true },
      ...(props.sync ? { sync: { key: props.sync, setSeries: false } } : {}),
    },
    scales: {
      x: { time: false },
      y: props.log ? { distr: 3 } : props.fromZero ? { range: (_plot, _low, high) => [0, high > 0 ? high * 1.15 : 1] } : {},
    },
    axes: [
      { ...axis, size: 22, space: 70, ...(props.axis === "step" ? { incrs: WHOLE } : {}), values: (_, splits) => splits.map(xText) },
      { ...axis, size: 52, space: 28, values: (_, splits) => splits.map((v) => (v === null ? "" : (props.tick ?? short)(v))) },
    ],
    series: [
      {},
      ...props.lines.map((line): uPlot.Series => ({
        stroke: cssColor(`--line-${line.tone}`),
        width: 1.5,
        spanGaps: line.points === true,
        ...(line.points ? { dash: [4, 3] } : {}),
        points: { show: line.points === true || line.values.length < 3, size: 5, fill: cssColor(`--line-${line.tone}`) },
      })),
    ],
    hooks: {
      setCursor: [(plot) => onCursor(plot.cursor.idx ?? null)],
      drawClear: [
        (plot) => {
          const { ctx, bbox } = plot;
          ctx.save();
          ctx.strokeStyle = cssColor("--flag");
          ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
          for (const flag of flags.current) {
            const at = Math.round(plot.valToPos(flag.x, "x", true));
            if (at < bbox.left || at > bbox.left + bbox.width) continue;
            ctx.beginPath();
            ctx.moveTo(at, bbox.top);
            ctx.lineTo(at, bbox.top + bbox.height);
            ctx.stroke();
          }
          ctx.restore();
        },
      ],
    },
  };
}

function inWords(props: Props): string {
  const unit = props.axis === "step" ? "steps" : "time";
  const each = props.lines.map((line) => {
    const summary = summaryOf(line.values);
    if (!summary) return `${line.name}: no values`;
    const { first, last, least, most } = summary;
    return `${line.name} from ${props.format(first)} to ${props.format(last)}, at least ${props.format(least)}, at most ${props.format(most)}`;
  });
  return `${props.title} over ${unit}: ${each.join("; ")}.`;
}

function Values(props: Props) {
  const places = samplePlaces(props.x.length, TABLE_ROWS);
  const at = (x: number) => (props.axis === "step" ? withCommas(x) : humanSeconds(x));
  return (
    <table class="sr-only">
      <caption>{props.title}</caption>
      <thead>
        <tr>
          <th scope="col">{props.axis === "step" ? "Step" : "Time"}</th>
          {props.lines.map((line) => (
            <th scope="col" key={line.name}>
              {line.name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {places.map((place) => (
          <tr key={place}>
            <td>{at(props.x[place]!)}</td>
            {props.lines.map((line) => (
              <td key={line.name}>{props.format(valueAt(line.values, place))}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function LineChart(props: Props) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const flags = useRef<readonly Flag[]>([]);
  const [cursor, setCursor] = useState<number | null>(null);
  const isDark = useCell(dark);
  flags.current = props.flags ?? [];
  const shape = [
    props.axis,
    props.log,
    props.sync,
    props.height,
    isDark,
    ...props.lines.map((line) => `${line.name}${line.tone}${line.points}`),
  ].join("|");
  const data = useMemo(() => [props.x, ...props.lines.map((line) => line.values)] as uPlot.AlignedData, [props.x, props.lines]);
  const latest = useRef(data);
  latest.current = data;
  const hasData = props.x.length > 0 && props.lines.some((line) => line.values.some((value) => value !== null));

  useEffect(() => {
    const box = place.current;
    if (!box || !hasData) return;
    const made = new uPlot(optionsFor(props, Math.max(100, box.clientWidth), setCursor, flags), latest.current, box);
    plot.current = made;
    const observer = new ResizeObserver(() => {
      const width = Math.max(100, box.clientWidth);
      if (width !== made.width) made.setSize({ width, height: made.height });
    });
    observer.observe(box);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape, hasData]);
  useEffect(() => {
    // A part that somebody looks at stays in view while new points come.
    const chart = plot.current;
    if (!chart || chart.data === data) return;
    const { min, max } = chart.scales["x"]!;
    const old = chart.data[0];
    const zoomed = old.length > 0 && (min! > old[0]! || max! < old[old.length - 1]!);
    chart.setData(data, !zoomed);
    if (zoomed) chart.redraw();
  }, [data]);
  useEffect(() => plot.current?.redraw(false), [props.flags]);

  const at = cursor ?? props.x.length - 1;
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{props.title}</span>
        {props.lines.map((line) => (
          <span key={line.name} class="chart-value">
            <i class={`swatch tone-${line.tone}`} aria-hidden="true" />
            {props.lines.length > 1 && <span class={props.brief ? "sr-only" : "dim"}>{line.name} </span>}
            <b>{hasData ? props.format(valueAt(line.values, at)) : NONE}</b>
          </span>
        ))}
        <span class="gap" />
        {cursor !== null && props.x[cursor] !== undefined && (
          <span class="dim">{props.axis === "step" ? `step ${withCommas(props.x[cursor])}` : humanSeconds(props.x[cursor])}</span>
        )}
      </figcaption>
      {hasData ? (
        <div class="chart-box" ref={place} role="img" aria-label={inWords(props)} style={{ height: `${props.height ?? 150}px` }} />
      ) : (
        <div class="chart-none dim">No values yet</div>
      )}
      {hasData && <Values {...props} />}
    </figure>
  );
}
