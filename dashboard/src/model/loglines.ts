// A log's lines in a bounded buffer: what comes by the stream is added at the end, and the oldest go in whole blocks. Blocks keep their identity
// while they do not change, so that only the last one is drawn again.

export const BLOCK_LINES = 200;
export const MOST_BLOCKS = 150;

export interface Block {
  readonly id: number;
  readonly lines: readonly string[];
}

export interface LogBuffer {
  readonly blocks: readonly Block[];
  readonly partial: string; // a line without an end yet
  readonly dropped: number; // lines that were let go
}

export const EMPTY_LOG: LogBuffer = { blocks: [], partial: "", dropped: 0 };

// Colours and other words to a terminal.
const ESCAPES = /\u001b\[[0-9;?]*[ -/]*[@-~]|\u001b\][^\u0007]*\u0007|[\u0000-\u0008\u000b-\u001f\u007f]/g;

export function appendLog(log: LogBuffer, text: string): LogBuffer {
  const lines = (log.partial + text).split("\n");
  const partial = lines.pop() ?? "";
  const blocks = [...log.blocks];
  let next = 0;
  while (next < lines.length) {
    const last = blocks[blocks.length - 1];
    const room = last ? BLOCK_LINES - last.lines.length : 0;
    if (last && room > 0) {
      blocks[blocks.length - 1] = { id: last.id, lines: [...last.lines, ...clean(lines.slice(next, next + room))] };
      next += room;
    } else {
      blocks.push({ id: last ? last.id + 1 : 0, lines: clean(lines.slice(next, next + BLOCK_LINES)) });
      next += BLOCK_LINES;
    }
  }
  let dropped = log.dropped;
  while (blocks.length > MOST_BLOCKS) dropped += blocks.shift()!.lines.length;
  return { blocks, partial, dropped };
}

// A stream that begins anew may tell the log's end once more: what of `text` stands at the end of the log already is taken away.
export function withoutRepeated(log: LogBuffer, text: string): string {
  const known = log.blocks.flatMap((block) => block.lines);
  const lines = text.split("\n");
  const told = clean(lines.slice(0, -1));
  for (let count = Math.min(known.length, told.length); count > 0; --count) {
    if (told[count - 1] !== known[known.length - 1]) continue;
    let same = count - 1;
    while (same > 0 && told[same - 1] === known[known.length - count + same - 1]) --same;
    if (same === 0) return lines.slice(count).join("\n");
  }
  return text;
}

function clean(lines: string[]): string[] {
  return lines.map((line) => line.replace(/^.*\r(?=.)/, "").replace(ESCAPES, ""));
}

export type Level = "error" | "warning" | "";

export function levelOf(line: string): Level {
  if (/\b(error|critical|fatal|FATAL|ERROR|panic)\b|\[E\]/.test(line)) return "error";
  return /\b(warn|warning|WARN|WARNING)\b|\[W\]/.test(line) ? "warning" : "";
}

// The parts of a line, every second of which matches the words.
export function splitMatches(line: string, words: string): string[] {
  if (words === "") return [line];
  const parts: string[] = [];
  const lower = line.toLowerCase();
  const wanted = words.toLowerCase();
  let from = 0;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    parts.push(line.slice(from, at), line.slice(at, at + wanted.length));
    from = at + wanted.length;
  }
  parts.push(line.slice(from));
  return parts;
}

export function countMatches(log: LogBuffer, words: string): number {
  if (words === "") return 0;
  const wanted = words.toLowerCase();
  let count = 0;
  for (const block of log.blocks) for (const line of block.lines) if (line.toLowerCase().includes(wanted)) ++count;
  return count;
}
