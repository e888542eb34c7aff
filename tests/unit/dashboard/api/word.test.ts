import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { forgetWord, keepWord, withWord, word } from "../../../../dashboard/src/api/word.ts";

const kept = new Map<string, string>();
const storage = {
  getItem: (key: string) => kept.get(key) ?? null,
  setItem: (key: string, value: string) => kept.set(key, value),
  removeItem: (key: string) => kept.delete(key),
};

function useStorage(value: unknown): void {
  Object.defineProperty(globalThis, "localStorage", { value, configurable: true });
}

beforeEach(() => {
  useStorage(storage);
  keepWord("old");
});

test("WordIsStored", () => {
  assert.equal(word(), "old");
  assert.deepEqual([...kept.values()], ["old"]);
  forgetWord("old");
  assert.equal(word(), "");
  assert.equal(kept.size, 0);
});

test("WordOfAnotherTabIsTaken", () => {
  kept.set([...kept.keys()][0]!, "new");
  assert.equal(word(), "new");
  forgetWord("old");
  assert.equal(word(), "new");
});

test("WordThatAnotherTabForgotIsGone", () => {
  kept.clear();
  assert.equal(word(), "");
});

test("WordLastsAsLongAsThePageWithoutStorage", () => {
  const full = () => {
    throw new Error("there is no room");
  };
  kept.clear();
  for (const each of [undefined, { ...storage, setItem: full }]) {
    useStorage(each);
    keepWord("here");
    assert.equal(word(), "here");
    forgetWord("here");
    assert.equal(word(), "");
  }
});

test("WordIsAParameterOfStreams", () => {
  keepWord("a&b");
  assert.equal(withWord("/stream?jobs=1"), "/stream?jobs=1&csrf=a%26b");
});
