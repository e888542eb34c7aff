// A server that speaks /api/v1 for the page's tests and for working on the page: one world of jobs, one-time tokens, a cookie and its word,
// server-sent events that can be resumed, and ways to make it fail.

import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { ActionName, Session } from "../../../dashboard/src/api/types.ts";
import { logLine, seriesOf, timelineOf, yamlOf } from "./history.ts";
import type { MockJob } from "./job.ts";
import type { World } from "./world.ts";

export const CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join("; ");
const TYPES: Record<string, string> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
};
const COOKIE = { name: "paceline_session", value: "mock" };
const CSRF = "mock-csrf";

export interface Failure {
  path: RegExp;
  method?: string;
  status: number;
  code: string;
  message: string;
  help?: string;
}

export interface Acted {
  job: string;
  action: string;
  body: unknown;
}

export interface MockOptions {
  bearer?: string; // a cluster's: each request brings this token, and there are no cookies
  page: string; // the folder that dashboard/build wrote
  world: World;
  place?: Session["place"];
  namespaces?: string[] | null;
  history?: Session["history"];
}

interface Listener {
  response: ServerResponse;
  jobs: boolean;
  job: string;
  sent: number; // the version up to which it knows all
  sentStep: number;
  sentLeftOut: readonly string[];
}

export class MockServer {
  readonly options: MockOptions;
  readonly tokens = new Set<string>(["one-time"]);
  readonly acted: Acted[] = [];
  readonly resumedFrom: string[] = []; // the Last-Event-ID of each stream that had one
  failures: Failure[] = [];
  signedIn = false;
  logEnds = false;
  #server: Server | null = null;
  #listeners = new Set<Listener>();
  #logs = new Set<{ response: ServerResponse; job: MockJob; next: number }>();
  #timer: ReturnType<typeof setInterval> | undefined;
  #port = 0;

  constructor(options: MockOptions) {
    this.options = options;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/`;
  }

  // What a browser keeps of the session: the storageState of Playwright's contexts.
  get browserState() {
    const cookie = { ...COOKIE, domain: "127.0.0.1", path: "/", expires: -1, httpOnly: true, secure: false, sameSite: "Strict" as const };
    const origin = new URL(this.url).origin;
    return { cookies: [cookie], origins: [{ origin, localStorage: [{ name: "paceline.csrf", value: CSRF }] }] };
  }

  get world(): World {
    return this.options.world;
  }

  get logListeners(): number {
    return this.#logs.size;
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  // On any free port; after a stop on the same one.
  async start(): Promise<void> {
    const server = createServer((request, response) => void this.#serve(request, response));
    this.#server = server;
    await new Promise<void>((done) => server.listen(this.#port, "127.0.0.1", done));
    this.#port = (server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.dropStreams();
    const server = this.#server;
    this.#server = null;
    if (!server) return;
    await new Promise<void>((done) => {
      server.close(() => done());
      server.closeAllConnections();
    });
  }

  // Lets the jobs train, and tells those who listen: each `interval` milliseconds.
  run(interval: number): void {
    clearInterval(this.#timer);
    this.#timer = setInterval(() => {
      this.world.advance(interval / 1000);
      this.publish();
    }, interval);
  }

  dropStreams(): void {
    for (const { response } of [...this.#listeners, ...this.#logs]) response.destroy();
    this.#listeners.clear();
    this.#logs.clear();
  }

  publish(): void {
    for (const listener of this.#listeners) this.#tell(listener, false);
    for (const log of this.#logs) {
      this.#event(log.response, "lines", { text: `${logLine(log.job, log.next++)}\n` });
      if (this.logEnds) this.#event(log.response, "end", {});
    }
  }

  #event(response: ServerResponse, name: string, data: unknown): void {
    response.write(`event: ${name}\nid: ${this.world.version}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  #tell(listener: Listener, full: boolean): void {
    const { world } = this;
    const version = String(world.version);
    if (listener.jobs) {
      const rows = [...world.jobs.values()].filter((job) => full || job.changed > listener.sent).map((job) => job.row(world.now()));
      const removed = world.removed.filter((each) => each.version > listener.sent).map((each) => each.uid);
      const leftOut = full || listener.sentLeftOut !== world.leftOut ? world.leftOut : undefined;
      listener.sentLeftOut = world.leftOut;
      if (leftOut || rows.length > 0 || removed.length > 0)
        this.#event(listener.response, "jobs", { version, full, rows, removed: full ? [] : removed, leftOut });
    }
    const job = world.jobs.get(listener.job);
    if (job && (full || job.changed > listener.sent)) {
      this.#event(listener.response, "job", job.job(version, world.now()));
      if (job.step > listener.sentStep) this.#event(listener.response, "series", { from: listener.sentStep });
      listener.sentStep = job.step;
    }
    listener.sent = world.version;
  }

  #error(response: ServerResponse, status: number, code: string, message: string, help = ""): void {
    this.#json(response, status, { error: { code, message, help } });
  }

  #json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
    response.writeHead(status, {
      "Content-Type": "application/json",
      "Cache-Control": "no-store",
      Date: new Date(this.world.now()).toUTCString(),
      ...headers,
    });
    response.end(JSON.stringify(body));
  }

  #text(response: ServerResponse, type: string, body: string | Buffer): void {
    response.writeHead(200, {
      "Content-Type": type,
      "Cache-Control": "no-store",
      "Content-Security-Policy": CSP,
      "X-Content-Type-Options": "nosniff",
    });
    response.end(body);
  }

  #session(): Session {
    const place = this.options.place ?? "Cluster";
    return {
      version: "0.9.0",
      place,
      ...(this.options.bearer ? {} : { cluster: "prod-eu" }),
      user: "ada@example.org",
      namespaces: this.options.namespaces ?? null,
      ...(this.options.history ? { history: this.options.history } : {}),
    };
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", this.url);
    if (!url.pathname.startsWith("/api/v1")) return this.#page(url.pathname, response);
    const path = url.pathname.slice("/api/v1".length);
    const failure = this.failures.find((each) => each.path.test(path) && (each.method ?? request.method) === request.method);
    if (failure) return this.#error(response, failure.status, failure.code, failure.message, failure.help);
    const body = request.method === "GET" ? undefined : await read(request);
    if (path === "/session" && request.method === "POST") return this.#signIn(body as { token?: string }, response);
    const { bearer } = this.options;
    const word = request.headers["x-paceline-csrf"] ?? (path.endsWith("/stream") ? url.searchParams.get("csrf") : null);
    const known =
      bearer === undefined
        ? this.signedIn && (request.headers.cookie ?? "").includes(`${COOKIE.name}=${COOKIE.value}`) && word === CSRF
        : request.headers.authorization === `Bearer ${bearer}`;
    if (!known) return this.#error(response, 401, "Unauthenticated", "there is no session", "sign in with a token");
    if (path === "/session") return this.#json(response, 200, this.#session());
    if (path === "/jobs") return this.#list(response);
    if (path === "/past") return this.#past(response);
    if (path === "/stream") return this.#stream(request, url.searchParams, response);
    const match = /^\/jobs\/([^/]+)\/([^/]+)(?:\/(.*))?$/.exec(path);
    const key = match ? `${decodeURIComponent(match[1]!)}/${decodeURIComponent(match[2]!)}` : "";
    const past = this.world.past.get(key);
    if (match && past && request.method === "GET" && !match[3]) return this.#json(response, 200, this.#pastJob(past.job, past.deleted));
    const live = key.split("@")[0]!;
    const job = request.method === "GET" ? (past?.job ?? this.world.jobs.get(key)) : this.world.jobs.get(live);
    if (!match || !job) return this.#error(response, 404, "NotFound", `there is no job ${key}`, "see /api/v1/jobs");
    if (request.method === "GET") return this.#read(job, match[3] ?? "", url.searchParams, response);
    if (key !== `${live}@${job.uid}`) return this.#error(response, 409, "Conflict", `${live} is another job by now`);
    return this.#act(job, live, request.method === "DELETE" ? "delete" : (match[3] ?? ""), body, response);
  }

  #page(path: string, response: ServerResponse): void {
    const name = path === "/" ? "index.html" : path.slice(1);
    const type = TYPES[name.split(".").pop() ?? ""];
    if (!type || !/^[\w.-]+$/.test(name)) return this.#error(response, 404, "NotFound", `there is no ${path}`);
    this.#text(response, type, readFileSync(join(this.options.page, name)));
  }

  #signIn(body: { token?: string }, response: ServerResponse): void {
    if (this.options.bearer !== undefined && body.token === this.options.bearer) return this.#json(response, 200, this.#session());
    if (!body.token || !this.tokens.delete(body.token))
      return this.#error(response, 401, "Unauthenticated", "this token is wrong, or it was used", "paceline dashboard prints another one");
    this.signedIn = true;
    const cookie = `${COOKIE.name}=${COOKIE.value}; HttpOnly; SameSite=Strict; Path=/`;
    this.#json(response, 200, { ...this.#session(), csrf: CSRF }, { "Set-Cookie": cookie });
  }

  #list(response: ServerResponse): void {
    const { world } = this;
    this.#json(response, 200, {
      version: String(world.version),
      jobs: [...world.jobs.values()].map((job) => job.row(world.now())),
      leftOut: world.leftOut,
    });
  }

  #past(response: ServerResponse): void {
    const { history } = this.options;
    if (!history?.kept) return this.#error(response, 503, "Unavailable", `there is no history here: ${history?.why ?? "none is kept"}`);
    const jobs = [...this.world.past.values()].map(({ job, deleted }) => ({ ...job.row(this.world.now()), deleted }));
    this.#json(response, 200, { jobs, more: false });
  }

  #pastJob(job: MockJob, deleted: string) {
    const told = job.job("0", this.world.now());
    const actions = Object.fromEntries(Object.keys(told.actions ?? {}).map((action) => [action, { allowed: false, why: "it is deleted" }]));
    return { ...told, row: { ...told.row, deleted }, actions };
  }

  #sse(response: ServerResponse): void {
    response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    response.write("retry: 200\n\n");
  }

  #stream(request: IncomingMessage, params: URLSearchParams, response: ServerResponse): void {
    this.#sse(response);
    const resumed = request.headers["last-event-id"];
    if (typeof resumed === "string") this.resumedFrom.push(resumed);
    const listener: Listener = {
      response,
      jobs: params.get("jobs") === "1",
      job: params.get("job") ?? "",
      sent: Number(resumed ?? 0),
      sentStep: 0,
      sentLeftOut: this.world.leftOut,
    };
    this.#listeners.add(listener);
    response.on("close", () => this.#listeners.delete(listener));
    this.#tell(listener, resumed === undefined);
  }

  #read(job: MockJob, what: string, params: URLSearchParams, response: ServerResponse): void {
    const { world } = this;
    const version = String(world.version);
    const number = (name: string, otherwise: number) => Number(params.get(name) ?? otherwise);
    const log = /^logs\/([^/]+)(\/stream)?$/.exec(what);
    if (log) return this.#log(job, decodeURIComponent(log[1]!), log[2] !== undefined, number("tail", 1000), response);
    switch (what) {
      case "":
        return this.#json(response, 200, job.job(version, world.now()));
      case "series":
        return this.#json(response, 200, seriesOf(job, version, number("points", 1000)));
      case "heatmap":
        return this.#json(
          response,
          200,
          job.heat(version, number("from", 0), number("to", Number.MAX_SAFE_INTEGER), number("columns", 400)),
        );
      case "timeline":
        return this.#json(response, 200, { items: timelineOf(job, world.now()) });
      case "events":
        return this.#json(response, 200, { events: job.events });
      case "logs":
        return this.#json(response, 200, { logs: job.logs() });
      case "next":
        return this.#json(response, 200, { decisions: job.next() });
      case "yaml":
        return this.#text(response, "text/yaml; charset=utf-8", yamlOf(job));
      default:
        return this.#error(response, 404, "NotFound", `there is no ${what}`);
    }
  }

  #log(job: MockJob, pod: string, live: boolean, tail: number, response: ServerResponse): void {
    if (!job.logs().some((each) => each.pod === pod))
      return this.#error(response, 404, "NotFound", `there is no pod ${pod}`, "see .../logs");
    const first = 3000;
    const count = Math.min(tail, 600);
    const lines = Array.from({ length: count }, (_, i) => logLine(job, first - count + i)).join("\n") + "\n";
    if (!live) return this.#text(response, "text/plain; charset=utf-8", lines);
    this.#sse(response);
    this.#event(response, "lines", { text: lines });
    const each = { response, job, next: first };
    this.#logs.add(each);
    response.on("close", () => this.#logs.delete(each));
  }

  #act(job: MockJob, key: string, action: string, body: unknown, response: ServerResponse): void {
    const allowed = job.actions()[action as ActionName];
    if (!allowed) return this.#error(response, 404, "NotFound", `there is no action ${action}`);
    if (!allowed.allowed) return this.#error(response, 409, "Conflict", `${key} can't: ${allowed.why}`);
    this.acted.push({ job: key, action, body });
    if (action === "suspend") job.phase = "Suspended";
    if (action === "resume") job.phase = "Running";
    if (action === "scale") job.workers = (body as { replicas: number }).replicas + 1;
    job.note("Normal", action[0]!.toUpperCase() + action.slice(1), `${action} by ada@example.org`, this.world.now());
    if (action === "delete") this.world.remove(key);
    else this.world.touch(job);
    this.#json(response, 202, { message: `${action} of ${key} is under way` });
    this.publish();
  }
}

async function read(request: IncomingMessage): Promise<unknown> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text === "" ? {} : JSON.parse(text);
}
