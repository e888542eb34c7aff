import assert from "node:assert/strict";
import { test } from "node:test";

// A browser's, of which its numbers alone are used.
Object.defineProperty(globalThis, "EventSource", { value: { CONNECTING: 0, OPEN: 1, CLOSED: 2 }, configurable: true });
const { TokenSource } = await import("../../../../dashboard/src/api/token_source.ts");

function serve(status: number, pieces: string[]): Promise<RequestInit> {
  return new Promise((asked) => {
    const body = new ReadableStream({
      start(controller) {
        for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
        controller.close();
      },
    });
    Object.defineProperty(globalThis, "fetch", {
      value: (_: string, init: RequestInit) => {
        asked(init);
        return Promise.resolve(new Response(body, { status }));
      },
      configurable: true,
    });
  });
}

const ended = (source: InstanceType<typeof TokenSource>) => new Promise<void>((resolve) => (source.onerror = () => resolve()));

test("EventsInAnyPiecesAreTold", async () => {
  const asked = serve(200, ["retry: 2000\n\nid: e-1\nevent: jo", 'bs\ndata: {"a": "b: c"}\n', "\nevent: ping\ndata: {}\n\n"]);
  const source = new TokenSource("/stream?jobs=1", "t", "e-0");
  const told: [string, string][] = [];
  source.addEventListener("jobs", (event) =>
    told.push([(event as MessageEvent<string>).data, (event as MessageEvent<string>).lastEventId]),
  );
  source.addEventListener("ping", () => told.push(["ping", ""]));
  await ended(source);
  assert.deepEqual(told, [
    ['{"a": "b: c"}', "e-1"],
    ["ping", ""],
  ]);
  assert.deepEqual((await asked).headers, { Authorization: "Bearer t", "Last-Event-ID": "e-0" });
  assert.equal(source.readyState, 2);
});

test("RefusalsEndIt", async () => {
  void serve(403, []);
  const source = new TokenSource("/stream?jobs=1", "t", "");
  let opened = false;
  source.onopen = () => (opened = true);
  await ended(source);
  assert.equal(opened, false);
});
