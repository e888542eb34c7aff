import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { credentials, forgetSecret, keepToken, keepWord, secret, withWord } from "../../../../dashboard/src/api/word.ts";

function storageOf(values: Map<string, string>) {
  return {
    getItem: (key: string) => values.get(key) ?? null,
    setItem: (key: string, value: string) => values.set(key, value),
    removeItem: (key: string) => values.delete(key),
  };
}

const kept = new Map<string, string>();
const keptByTab = new Map<string, string>();
const storage = storageOf(kept);

function useStorage(value: unknown, name = "localStorage"): void {
  Object.defineProperty(globalThis, name, { value, configurable: true });
}

beforeEach(() => {
  useStorage(storage);
  useStorage(storageOf(keptByTab), "sessionStorage");
  keepWord("old");
});

test("WordIsStored", () => {
  assert.equal(secret(), "old");
  assert.deepEqual([...kept.values()], ["old"]);
  forgetSecret("old");
  assert.equal(secret(), "");
  assert.equal(kept.size, 0);
});

test("WordOfAnotherTabIsTaken", () => {
  kept.set([...kept.keys()][0]!, "new");
  assert.equal(secret(), "new");
  forgetSecret("old");
  assert.equal(secret(), "new");
});

test("WordThatAnotherTabForgotIsGone", () => {
  kept.clear();
  assert.equal(secret(), "");
});

test("WordLastsAsLongAsThePageWithoutStorage", () => {
  const full = () => {
    throw new Error("there is no room");
  };
  kept.clear();
  for (const each of [undefined, { ...storage, setItem: full }]) {
    useStorage(each);
    keepWord("here");
    assert.equal(secret(), "here");
    forgetSecret("here");
    assert.equal(secret(), "");
  }
});

test("WordIsAParameterOfStreams", () => {
  keepWord("a&b");
  assert.equal(withWord("/stream?jobs=1"), "/stream?jobs=1&csrf=a%26b");
});

test("TokenIsOfItsTabAndGoesFirst", () => {
  keepToken("t");
  assert.equal(secret(), "t");
  assert.deepEqual([...keptByTab.values()], ["t"]);
  assert.deepEqual(credentials(), { Authorization: "Bearer t" });
  forgetSecret("t");
  assert.equal(secret(), "old");
  assert.deepEqual(credentials(), { "X-Paceline-CSRF": "old" });
});

test("WordTakesATokensPlace", () => {
  keepToken("t");
  keepWord("new");
  assert.equal(secret(), "new");
  assert.equal(keptByTab.size, 0);
});
