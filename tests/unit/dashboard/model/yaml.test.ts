import assert from "node:assert/strict";
import { test } from "node:test";
import { yamlTokens } from "../../../../dashboard/src/model/yaml.ts";

test("TokensAddUpToTheLine", () => {
  const lines = [
    "spec:",
    "  chief: {replicas: 1}",
    "  - name: x",
    "  - text",
    "# note",
    "a: b # c",
    '"quoted key": "a: b"',
    "",
    "just text",
    "url: http://x/y",
    "  key :",
  ];
  for (const line of lines)
    assert.equal(
      yamlTokens(line)
        .map((token) => token.text)
        .join(""),
      line,
    );
});

test("KeysAndCommentsAreTold", () => {
  const kinds = (line: string) =>
    yamlTokens(line)
      .map((token) => [token.kind, token.text.trim()])
      .filter(([, text]) => text !== "");
  assert.deepEqual(kinds("  steps: 5 # all"), [
    ["key", "steps"],
    ["mark", ":"],
    ["value", "5"],
    ["comment", "# all"],
  ]);
  assert.deepEqual(kinds("# all"), [["comment", "# all"]]);
});
