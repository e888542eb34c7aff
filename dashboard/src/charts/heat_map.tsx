// The heat map of step time: rows are ranks with their nodes, columns are steps that all took together. The pointer or the arrow keys read a cell
// out; a drag, or two presses of Enter, zooms in.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { HeatMap } from "../api/types.ts";
import { factor, ms } from "../format/numbers.ts";
import { matrixOf, OWN, orderRows, partsOf, patternOf, ratioAt, rowMeans, stepRange, type Order } from "../model/heatmap.ts";
import { cellText, memberText, partName, patternText, stepText } from "../model/heat_words.ts";
import { useCell } from "../state/cell.ts";
import { dark } from "../state/preferences.ts";
import { Segmented } from "../components/common.tsx";
import {
  cellAt,
  cellsWidth,
  frameFor,
  heightOf,
  paint,
  paintOverlay,
  rawRange,
  type Cell,
  type Frame,
  type Ink,
  type Picture,
} from "./heat_painter.ts";

export interface HeatSettings {
  part: string;
  relative: boolean;
  order: Order;
}

interface Props {
  map: HeatMap;
  settings: HeatSettings;
  slowNow: readonly string[]; // members
  onSettings(settings: HeatSettings): void;
  onZoom(range: [number, number]): void;
  onBack: (() => void) | null;
  onWidth(width: number): void;
}

function inkOf(): Ink {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => style.getPropertyValue(name).trim();
  return {
    text: color("--text"),
    dim: color("--dim"),
    grid: color("--grid"),
    empty: color("--line"),
    mean: color("--mean"),
    hot: color("--hot"),
  };
}

function Legend({ picture }: { picture: Picture }) {
  const [low, high] = rawRange(picture.matrix);
  const [from, to] = picture.relative ? ["½×", "3×"] : [`${ms(low)} ms`, `${ms(high)} ms`];
  return (
    <span class="heat-legend" role="img" aria-label={`Colours from ${from} to ${to}`}>
      <span>{from}</span>
      <i class={picture.relative ? "ramp ramp-relative" : "ramp ramp-raw"} />
      {picture.relative && <span class="ramp-one">median</span>}
      <span>{to}</span>
    </span>
  );
}

function ReadOut({ map, picture, cell }: { map: HeatMap; picture: Picture; cell: Cell | null }) {
  if (!cell) return <p class="heat-read dim">Point at a cell, or move with the arrow keys. Drag to zoom in.</p>;
  const row = picture.order[cell.place]!;
  const value = picture.matrix.cells[row * picture.matrix.columns + cell.column]!;
  const others = map.parts
    .map((part) => [part, map.values[part]?.[row]?.[cell.column]] as const)
    .filter(([, v]) => v !== null && v !== undefined && v > 0);
  return (
    <p class="heat-read">
      <b>{stepText(map, cell.column)}</b>
      <span>{memberText(map, row)}</span>
      {Number.isNaN(value) ? (
        <span class="dim">told nothing</span>
      ) : (
        <>
          <b>{ms(value)} ms</b>
          <span>
            {factor(ratioAt(picture.matrix, row, cell.column))} the median of {ms(picture.matrix.medians[cell.column])} ms
          </span>
          <span class="dim">{others.map(([part, v]) => `${part} ${ms(v)}`).join(" · ")}</span>
        </>
      )}
    </p>
  );
}

function Ranks({ map, picture }: { map: HeatMap; picture: Picture }) {
  return (
    <details class="as-table">
      <summary>As a table</summary>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Ranks of the heat map">
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Rank</th>
              <th scope="col">Member</th>
              <th scope="col">Node</th>
              <th scope="col" class="number">
                Mean over the median
              </th>
            </tr>
          </thead>
          <tbody>
            {picture.order.map((row) => (
              <tr key={row}>
                <td>{map.members[row]!.rank ?? "-"}</td>
                <td>{map.members[row]!.name}</td>
                <td>{map.members[row]!.node ?? "-"}</td>
                <td class="number">{factor(picture.means[row])}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

function usePicture(map: HeatMap, settings: HeatSettings, isDark: boolean): Picture {
  const matrix = useMemo(() => matrixOf(map, settings.part), [map, settings.part]);
  const means = useMemo(() => rowMeans(matrix), [matrix]);
  return useMemo(() => {
    const order = orderRows(map, means, settings.order);
    const nodes = order.map((row) => map.members[row]!.node ?? map.members[row]!.name);
    const labels = order.map((row) => String(map.members[row]!.rank ?? map.members[row]!.name));
    const names = order.map((row) => map.members[row]!.name);
    return { matrix, means, order, labels, names, nodes, relative: settings.relative, dark: isDark, steps: map.steps };
  }, [matrix, means, settings.order, settings.relative, isDark]);
}

function useWidth(box: { current: HTMLElement | null }, onWidth: (width: number) => void): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = box.current!;
    const measure = () => setWidth(element.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (width > 0) onWidth(width);
  }, [width]);
  return width;
}

const MOVES: Record<string, [number, number]> = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

function moved(cell: Cell | null, key: string, far: boolean, picture: Picture): Cell | null {
  const { rows, columns } = picture.matrix;
  const from = cell ?? { place: 0, column: columns - 1 };
  if (key === "Home") return { ...from, column: 0 };
  if (key === "End") return { ...from, column: columns - 1 };
  const move = MOVES[key];
  if (!move) return null;
  const by = far ? 10 : 1;
  return {
    place: Math.max(0, Math.min(rows - 1, from.place + move[0] * (cell ? by : 0))),
    column: Math.max(0, Math.min(columns - 1, from.column + move[1] * (cell ? by : 0))),
  };
}

export function HeatMapChart({ map, settings, slowNow, onSettings, onZoom, onBack, onWidth }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const base = useRef<HTMLCanvasElement>(null);
  const overlay = useRef<HTMLCanvasElement>(null);
  const isDark = useCell(dark);
  const picture = usePicture(map, settings, isDark);
  const width = useWidth(box, (w) => onWidth(cellsWidth(frameFor(w, map.members.length, w < 600))));
  const frame: Frame = useMemo(() => frameFor(width, map.members.length, width < 600), [width, map.members.length]);
  const [cell, setCell] = useState<Cell | null>(null);
  const [spoken, setSpoken] = useState("");
  const drag = useRef<{ from: number; to: number } | null>(null);
  const [dragged, setDragged] = useState<[number, number] | null>(null);
  const mark = useRef<number | null>(null);
  const pattern = useMemo(() => patternOf(picture.matrix), [picture.matrix]);

  useLayoutEffect(() => {
    if (width > 0 && base.current) paint(base.current, picture, frame, inkOf());
  }, [picture, frame]);
  const valid = cell && cell.place < picture.matrix.rows && cell.column < picture.matrix.columns ? cell : null;
  useLayoutEffect(() => {
    if (width > 0 && overlay.current) paintOverlay(overlay.current, picture, frame, inkOf(), valid, dragged);
  }, [picture, frame, valid, dragged]);

  const at = (event: PointerEvent) => {
    const bounds = overlay.current!.getBoundingClientRect();
    return { x: event.clientX - bounds.left, y: event.clientY - bounds.top };
  };
  const clampColumn = (x: number) =>
    Math.max(0, Math.min(picture.matrix.columns - 1, Math.floor(((x - frame.left) / cellsWidth(frame)) * picture.matrix.columns)));
  const onMove = (event: PointerEvent) => {
    const { x, y } = at(event);
    setCell(cellAt(frame, picture, x, y));
    if (!drag.current) return;
    drag.current.to = clampColumn(x);
    setDragged([drag.current.from, drag.current.to]);
  };
  const onDown = (event: PointerEvent) => {
    const { x, y } = at(event);
    if (event.button !== 0 || !cellAt(frame, picture, x, y)) return;
    drag.current = { from: clampColumn(x), to: clampColumn(x) };
    overlay.current!.setPointerCapture(event.pointerId);
  };
  const onUp = () => {
    const done = drag.current;
    drag.current = null;
    setDragged(null);
    if (done && Math.abs(done.to - done.from) >= 2) onZoom(stepRange(map, done.from, done.to));
  };
  const onKey = (event: KeyboardEvent) => {
    const next = moved(valid, event.key, event.shiftKey, picture);
    if (next) {
      event.preventDefault();
      setCell(next);
      setSpoken(cellText(map, picture.matrix, picture.order[next.place]!, next.column));
      if (mark.current !== null) setDragged([mark.current, next.column]);
    } else if (event.key === "Enter" && valid) {
      event.preventDefault();
      if (mark.current === null) {
        mark.current = valid.column;
        setDragged([valid.column, valid.column]);
        setSpoken("Selection begins here. Move, and press Enter again to zoom in.");
      } else {
        const from = mark.current;
        mark.current = null;
        setDragged(null);
        if (from !== valid.column) onZoom(stepRange(map, from, valid.column));
      }
    } else if (event.key === "Escape" || event.key === "Backspace") {
      event.preventDefault();
      if (mark.current === null && onBack) onBack();
      mark.current = null;
      setDragged(null);
    }
  };
  const parts = partsOf(map);
  return (
    <figure class="heat">
      <figcaption class="heat-head">
        <h2>Step time by rank</h2>
        <p class="heat-pattern">{patternText(map, pattern, slowNow)}</p>
        <span class="gap" />
        <label class="inline">
          Show{" "}
          <select value={settings.part} onChange={(event) => onSettings({ ...settings, part: event.currentTarget.value })}>
            {parts.map((part) => (
              <option key={part} value={part}>
                {partName(part)}
              </option>
            ))}
          </select>
        </label>
        <Segmented
          label="Colours by"
          value={settings.relative ? "relative" : "raw"}
          options={[
            ["relative", "× median"],
            ["raw", "ms"],
          ]}
          onChange={(value) => onSettings({ ...settings, relative: value === "relative" })}
        />
        <label class="inline">
          Rows by{" "}
          <select value={settings.order} onChange={(event) => onSettings({ ...settings, order: event.currentTarget.value as Order })}>
            <option value="rank">rank</option>
            <option value="slowest">slowest first</option>
            <option value="node">node</option>
          </select>
        </label>
        {onBack && (
          <button type="button" class="button small" onClick={onBack}>
            Zoom back
          </button>
        )}
      </figcaption>
      <div class="heat-box" ref={box} style={{ height: `${heightOf(frame, map.members.length)}px` }}>
        {width > 0 && (
          <>
            <canvas ref={base} aria-hidden="true" />
            <canvas
              ref={overlay}
              class="heat-overlay"
              tabIndex={0}
              role="application"
              aria-roledescription="heat map"
              aria-label={
                `Heat map of ${partName(settings.part)}, ${map.members.length} ranks, ${stepText(map, 0)} to ${stepText(map, map.steps.length - 1)}. ` +
                `${patternText(map, pattern, slowNow)} Arrow keys read cells out; Enter twice zooms in, Escape zooms back. A table follows.`
              }
              onPointerMove={onMove}
              onPointerDown={onDown}
              onPointerUp={onUp}
              onPointerCancel={onUp}
              onDblClick={() => onBack?.()}
              onPointerLeave={() => {
                if (!drag.current) setCell(null);
              }}
              onKeyDown={onKey}
            />
          </>
        )}
      </div>
      <div class="heat-foot">
        <ReadOut map={map} picture={picture} cell={valid} />
        <Legend picture={picture} />
      </div>
      <span class="sr-only" aria-live="polite">
        {spoken}
      </span>
      <Ranks map={map} picture={picture} />
    </figure>
  );
}

export const DEFAULT_HEAT: HeatSettings = { part: OWN, relative: true, order: "rank" };
