import assert from "node:assert/strict";
import { test } from "node:test";
import {
  appendLog,
  BLOCK_LINES,
  countMatches,
  EMPTY_LOG,
  levelOf,
  MOST_BLOCKS,
  splitMatches,
  withoutRepeated,
  type LogBuffer,
} from "../../../../dashboard/src/model/loglines.ts";

const lines = (log: LogBuffer) => log.blocks.flatMap((block) => block.lines);

test("LineThatComesInTwoPartsIsOne", () => {
  const log = appendLog(appendLog(EMPTY_LOG, "one\ntw"), "o\nthree");
  assert.deepEqual(lines(log), ["one", "two"]);
  assert.equal(log.partial, "three");
});

test("BlocksThatAreFullStayTheSame", () => {
  const first = appendLog(EMPTY_LOG, "x\n".repeat(BLOCK_LINES));
  const second = appendLog(first, "y\n");
  assert.equal(second.blocks[0], first.blocks[0]);
  assert.equal(second.blocks.length, 2);
});

test("OldestLinesGoInWholeBlocks", () => {
  const log = appendLog(EMPTY_LOG, Array.from({ length: BLOCK_LINES * (MOST_BLOCKS + 2) }, (_, i) => `${i}\n`).join(""));
  assert.equal(log.blocks.length, MOST_BLOCKS);
  assert.equal(log.dropped, 2 * BLOCK_LINES);
  assert.equal(lines(log)[0], String(2 * BLOCK_LINES));
});

test("WordsToATerminalAreTakenOut", () => {
  assert.deepEqual(lines(appendLog(EMPTY_LOG, "\u001b[31mred\u001b[0m\n10 %\r20 %\n\u001b]0;title\u0007text\n")), ["red", "20 %", "text"]);
});

test("MatchesAreEverySecondPart", () => {
  assert.deepEqual(splitMatches("Loss and loss", "loss"), ["", "Loss", " and ", "loss", ""]);
  assert.deepEqual(splitMatches("abc", "x"), ["abc"]);
  assert.deepEqual(splitMatches("abc", ""), ["abc"]);
  assert.equal(countMatches(appendLog(EMPTY_LOG, "a\nb\nA\n"), "a"), 2);
});

test("LevelsAreTold", () => {
  assert.equal(levelOf("12:00 [E] lost"), "error");
  assert.equal(levelOf("WARNING: x"), "warning");
  assert.equal(levelOf("errors=0"), "");
});

test("LinesThatAreToldAgainAreKnown", () => {
  const log = appendLog(EMPTY_LOG, "a\nb\nb\nc\n");
  const cases: [string, string][] = [
    ["b\nc\nd\n", "d\n"],
    ["b\nb\nc\nd\ne", "d\ne"],
    ["a\nb\nb\nc\n", ""],
    ["x\nc\nd\n", "x\nc\nd\n"],
    ["d\n", "d\n"],
  ];
  for (const [text, expected] of cases) assert.equal(withoutRepeated(log, text), expected, JSON.stringify(text));
  assert.equal(withoutRepeated(EMPTY_LOG, "a\n"), "a\n");
});
