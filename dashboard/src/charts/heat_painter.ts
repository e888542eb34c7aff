// Paints the heat map's canvas: cells, the medians above them, and each row's mean beside them. Sizes are in CSS pixels.

import { rawColor, relativeColor, type Rgb } from "../model/colors.ts";
import { quantile, ratioAt, type Matrix } from "../model/heatmap.ts";

export interface Frame {
  width: number;
  left: number; // of the cells
  top: number;
  right: number; // the room for means
  bottom: number;
  rowHeight: number;
}

export interface Picture {
  matrix: Matrix;
  means: Float32Array;
  order: readonly number[]; // the matrix' row at each place
  labels: readonly string[]; // ranks, by place
  names: readonly string[]; // of the members, by place
  nodes: readonly string[]; // by place
  relative: boolean;
  dark: boolean;
  steps: readonly number[];
}

export interface Ink {
  text: string;
  dim: string;
  grid: string;
  empty: string;
  mean: string;
  hot: string;
}

const NODE_RIGHT = 38; // of the cells' left edge
const NAME_WIDTH = 74;
const MOST_NAMES = 16; // more rows are known by their ranks alone

// Few rows have their members' names between node and rank, where there is room.
export function frameFor(width: number, rows: number, narrow: boolean): Frame {
  const rowHeight = Math.max(4, Math.min(18, Math.floor(560 / Math.max(1, rows))));
  const names = rows <= MOST_NAMES ? NAME_WIDTH : 0;
  return { width, left: narrow ? 30 : 132 + names, top: 34, right: narrow ? 0 : 88, bottom: 20, rowHeight };
}

export const hasNames = (frame: Frame): boolean => frame.left > 132;
const isNarrow = (frame: Frame): boolean => frame.left < 100;
export const cellsWidth = (frame: Frame): number => Math.max(10, frame.width - frame.left - frame.right);
export const heightOf = (frame: Frame, rows: number): number => frame.top + rows * frame.rowHeight + frame.bottom;

// The range of colours by milliseconds: the hottest and coldest hundredth of the cells share its ends.
export function rawRange(matrix: Matrix): [number, number] {
  const low = quantile(matrix, 0.01);
  const high = quantile(matrix, 0.99);
  return high > low ? [low, high] : [low * 0.5, low * 1.5 || 1];
}

// One pixel a cell; the canvas scales it up.
export function paintCells(picture: Picture): HTMLCanvasElement {
  const { matrix, order, relative, dark } = picture;
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, matrix.columns);
  canvas.height = Math.max(1, matrix.rows);
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(canvas.width, canvas.height);
  const [low, high] = rawRange(matrix);
  order.forEach((row, place) => {
    for (let column = 0; column < matrix.columns; ++column) {
      const value = relative ? ratioAt(matrix, row, column) : matrix.cells[row * matrix.columns + column]!;
      if (Number.isNaN(value)) continue;
      const color: Rgb = relative ? relativeColor(value, dark) : rawColor((value - low) / (high - low), dark);
      image.data.set([color[0], color[1], color[2], 255], 4 * (place * matrix.columns + column));
    }
  });
  context.putImageData(image, 0, 0);
  return canvas;
}

function paintEmpty(context: CanvasRenderingContext2D, frame: Frame, rows: number, ink: Ink): void {
  const width = cellsWidth(frame);
  const height = rows * frame.rowHeight;
  context.save();
  context.beginPath();
  context.rect(frame.left, frame.top, width, height);
  context.clip();
  context.strokeStyle = ink.empty;
  context.lineWidth = 1;
  context.beginPath();
  for (let x = -height; x < width; x += 6) {
    context.moveTo(frame.left + x, frame.top + height);
    context.lineTo(frame.left + x + height, frame.top);
  }
  context.stroke();
  context.restore();
}

function paintMedians(context: CanvasRenderingContext2D, picture: Picture, frame: Frame, ink: Ink): void {
  const { medians, columns } = picture.matrix;
  const known = medians.filter((value) => !Number.isNaN(value));
  if (known.length === 0) return;
  const most = known.reduce((a, b) => Math.max(a, b)) || 1;
  const width = cellsWidth(frame) / columns;
  const base = frame.top - 5;
  for (let column = 0; column < columns; ++column) {
    const height = (medians[column]! / most) * (frame.top - 15);
    if (Number.isNaN(height)) continue;
    const from = frame.left + column * width;
    context.fillStyle = ink.grid;
    context.fillRect(from, base - height, width + 0.5, height);
    context.fillStyle = ink.mean;
    context.fillRect(from, base - height, width + 0.5, 1);
  }
  context.fillStyle = ink.dim;
  context.textAlign = "right";
  if (!isNarrow(frame)) context.fillText("median", frame.left - 8, frame.top - 11);
}

function paintMeans(context: CanvasRenderingContext2D, picture: Picture, frame: Frame, ink: Ink): void {
  if (frame.right === 0) return;
  const from = frame.width - frame.right + 8;
  const room = frame.right - 50;
  context.textAlign = "left";
  context.fillStyle = ink.dim;
  context.fillText("mean", from, frame.top - 11);
  picture.order.forEach((row, place) => {
    const mean = picture.means[row]!;
    if (Number.isNaN(mean)) return;
    const y = frame.top + place * frame.rowHeight;
    context.fillStyle = isSlow(mean) ? ink.hot : ink.mean;
    context.fillRect(from, y + 1, Math.max(1, Math.min(1, mean / 2) * room), Math.max(1, frame.rowHeight - 2));
    if (frame.rowHeight < 11 && !isSlow(mean)) return;
    context.fillStyle = isSlow(mean) ? ink.text : ink.dim;
    context.fillText(`${mean.toFixed(2)}×`, from + room + 5, y + frame.rowHeight / 2 + 3.5);
  });
}

const isSlow = (mean: number): boolean => mean >= 1.1;
const LABEL_HEIGHT = 11;

// Which places have a label: the slow ones, and of the others every so many that none lies on another.
export function labelledPlaces(rows: number, rowHeight: number, slow: (place: number) => boolean): number[] {
  const every = Math.max(1, Math.ceil(LABEL_HEIGHT / rowHeight));
  const places = Array.from({ length: rows }, (_, place) => place);
  const first = places.filter(slow);
  const free = (place: number) => first.every((other) => Math.abs(other - place) >= every);
  return [...first, ...places.filter((place) => place % every === 0 && free(place))].sort((a, b) => a - b);
}

function paintLabels(context: CanvasRenderingContext2D, picture: Picture, frame: Frame, ink: Ink): void {
  const narrow = isNarrow(frame);
  const slow = (place: number) => isSlow(picture.means[picture.order[place]!]!);
  context.textAlign = "right";
  let nodeBefore = "";
  const named = hasNames(frame);
  const nodeEdge = frame.left - NODE_RIGHT - (named ? NAME_WIDTH : 0);
  const write = (rank: string, name: string, node: string, y: number, always: boolean) => {
    context.fillText(named && rank === name ? "-" : rank, frame.left - 8, y);
    if (named) context.fillText(name, frame.left - NODE_RIGHT, y, NAME_WIDTH - 8);
    if (!narrow && !(named && node === name) && (always || node !== nodeBefore)) context.fillText(node, nodeEdge, y, nodeEdge - 2);
    nodeBefore = node;
  };
  for (const place of labelledPlaces(picture.labels.length, frame.rowHeight, slow)) {
    context.fillStyle = slow(place) ? ink.text : ink.dim;
    context.font = `${slow(place) ? "600 " : ""}11px system-ui, sans-serif`;
    const y = frame.top + place * frame.rowHeight + frame.rowHeight / 2 + 3.5;
    write(picture.labels[place]!, picture.names[place]!, picture.nodes[place]!, y, slow(place));
  }
  context.fillStyle = ink.dim;
  context.font = "11px system-ui, sans-serif";
  if (!narrow) write("rank", "member", "node", frame.top + picture.labels.length * frame.rowHeight + 14, true);
  paintNodeTicks(context, picture, frame, ink);
}

// A short line wherever the next rows are another node's.
function paintNodeTicks(context: CanvasRenderingContext2D, picture: Picture, frame: Frame, ink: Ink): void {
  context.fillStyle = ink.mean;
  picture.nodes.forEach((node, place) => {
    if (place > 0 && node !== picture.nodes[place - 1]) context.fillRect(frame.left - 5, frame.top + place * frame.rowHeight, 5, 1);
  });
}

// Columns that are labelled with their first step: about one in every ninety pixels, each once.
export function tickColumns(columns: number, width: number): number[] {
  const ticks = Math.max(1, Math.min(columns, 10, Math.floor(width / 90)));
  return [...new Set(Array.from({ length: ticks }, (_, i) => Math.floor((i * columns) / ticks)))];
}

function paintSteps(context: CanvasRenderingContext2D, picture: Picture, frame: Frame, ink: Ink, rows: number): void {
  const width = cellsWidth(frame);
  const { columns } = picture.matrix;
  context.fillStyle = ink.dim;
  context.textAlign = "left";
  for (const column of tickColumns(columns, width)) {
    const x = frame.left + (column / columns) * width;
    context.fillRect(x, frame.top + rows * frame.rowHeight, 1, 4);
    context.fillText(picture.steps[column]!.toLocaleString("en-US"), x + 3, frame.top + rows * frame.rowHeight + 14);
  }
}

// An empty canvas of that size, in the screen's own pixels.
function clearedContext(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const scale = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d")!;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

export function paint(canvas: HTMLCanvasElement, picture: Picture, frame: Frame, ink: Ink): void {
  const rows = picture.matrix.rows;
  const height = heightOf(frame, rows);
  const context = clearedContext(canvas, frame.width, height);
  context.font = "11px system-ui, sans-serif";
  paintEmpty(context, frame, rows, ink);
  context.imageSmoothingEnabled = false;
  context.drawImage(paintCells(picture), frame.left, frame.top, cellsWidth(frame), rows * frame.rowHeight);
  paintMedians(context, picture, frame, ink);
  paintMeans(context, picture, frame, ink);
  paintLabels(context, picture, frame, ink);
  paintSteps(context, picture, frame, ink, rows);
}

export interface Cell {
  place: number;
  column: number;
}

export function cellAt(frame: Frame, picture: Picture, x: number, y: number): Cell | null {
  const column = Math.floor(((x - frame.left) / cellsWidth(frame)) * picture.matrix.columns);
  const place = Math.floor((y - frame.top) / frame.rowHeight);
  const inside = column >= 0 && column < picture.matrix.columns && place >= 0 && place < picture.matrix.rows;
  return inside ? { place, column } : null;
}

// The cross-hair over a cell, and the columns that are being dragged over.
export function paintOverlay(
  canvas: HTMLCanvasElement,
  picture: Picture,
  frame: Frame,
  ink: Ink,
  cell: Cell | null,
  drag: [number, number] | null,
): void {
  const rows = picture.matrix.rows;
  const height = heightOf(frame, rows);
  const context = clearedContext(canvas, frame.width, height);
  const width = cellsWidth(frame) / picture.matrix.columns;
  if (drag) {
    const [a, b] = drag[0] <= drag[1] ? drag : [drag[1], drag[0]];
    context.globalAlpha = 0.18;
    context.fillStyle = ink.text;
    context.fillRect(frame.left + a * width, frame.top, (b - a + 1) * width, rows * frame.rowHeight);
    context.globalAlpha = 1;
  }
  if (!cell) return;
  context.strokeStyle = ink.text;
  context.lineWidth = 1;
  context.globalAlpha = 0.55;
  context.strokeRect(frame.left + 0.5, frame.top + cell.place * frame.rowHeight - 0.5, cellsWidth(frame) - 1, frame.rowHeight + 1);
  context.strokeRect(frame.left + cell.column * width - 0.5, frame.top - 0.5, Math.max(2, width) + 1, rows * frame.rowHeight + 1);
  context.globalAlpha = 1;
}
