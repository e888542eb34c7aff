// A member's log: its end at once, and what comes as it comes.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { BASE, getLog, getLogs, type ApiError } from "../../api/client.ts";
import { openStream } from "../../api/stream.ts";
import type { Log } from "../../api/types.ts";
import { withCommas } from "../../format/numbers.ts";
import {
  appendLog,
  countMatches,
  EMPTY_LOG,
  levelOf,
  splitMatches,
  withoutRepeated,
  type Block,
  type LogBuffer,
} from "../../model/loglines.ts";
import { jobHref } from "../../model/route.ts";
import { errorFrom, replaceAddress } from "../../state/app.ts";
import { oncePerFrame } from "../../state/cell.ts";
import { memo } from "../../state/memo.ts";
import { useFollow, useResource } from "../../state/resource.ts";
import { Empty, ErrorBox, Loaded } from "../../components/common.tsx";
import { Icon } from "../../components/icons.tsx";
import type { TabProps } from "./tab.ts";

const TAIL = 2000;

const LogBlock = memo(function LogBlock({ block, words, only }: { block: Block; words: string; only: boolean }) {
  return (
    <div class="log-block">
      {block.lines.map((line, i) => {
        const parts = splitMatches(line, words);
        if (only && words !== "" && parts.length === 1) return null;
        return (
          <div key={i} class={`log-line ${levelOf(line)}`}>
            {parts.map((part, j) => (j % 2 === 1 ? <mark key={j}>{part}</mark> : part))}
            {line === "" && "\n"}
          </div>
        );
      })}
    </div>
  );
});

interface Tail {
  log: LogBuffer;
  error: ApiError | null;
  ended: boolean;
  connected: boolean;
}

// While `paused` nothing is shown that came after; it is kept, and comes when one goes on.
function useTail(path: string, log: Log, container: string, paused: boolean): Tail {
  const [tail, setTail] = useState<Tail>({ log: EMPTY_LOG, error: null, ended: false, connected: true });
  const buffer = useRef<Tail>(tail);
  const isPaused = useRef(paused);
  isPaused.current = paused;
  const show = useMemo(
    () =>
      oncePerFrame(() => {
        if (!isPaused.current) setTail(buffer.current);
      }),
    [],
  );
  useEffect(() => {
    if (!paused) setTail(buffer.current);
  }, [paused]);
  useEffect(() => {
    buffer.current = { log: EMPTY_LOG, error: null, ended: false, connected: true };
    setTail(buffer.current);
    const update = (change: Partial<Tail>) => {
      buffer.current = { ...buffer.current, ...change };
      show();
    };
    const add = (text: string) => update({ log: appendLog(buffer.current.log, text), error: null });
    if (!log.live) {
      const control = new AbortController();
      getLog(path, log.pod, container, TAIL, control.signal).then(
        (text) => {
          add(text.endsWith("\n") ? text : `${text}\n`);
          update({ ended: true });
        },
        (failure) => {
          if (!control.signal.aborted) update({ error: errorFrom(failure) });
        },
      );
      return () => control.abort();
    }
    const url = `${BASE}${path}/logs/${encodeURIComponent(log.pod)}/stream?tail=${TAIL}&container=${encodeURIComponent(container)}`;
    let begins = true; // the stream has just been opened
    const stream = openStream(url, {
      handlers: {
        lines: (data) => {
          const { text } = data as { text: string };
          if (!begins) return add(text);
          begins = false;
          buffer.current = { ...buffer.current, log: { ...buffer.current.log, partial: "" } };
          add(withoutRepeated(buffer.current.log, text));
        },
        end: () => {
          update({ ended: true });
          stream.close();
        },
      },
      onState: (up) => {
        begins ||= up;
        update({ connected: up });
      },
      onRefused: () => {
        getLog(path, log.pod, container, 1).catch((failure) => update({ error: errorFrom(failure) }));
      },
    });
    return () => stream.close();
  }, [path, log.pod, container, log.live]);
  return tail;
}

function Follow({ tail, wrap, words, only }: { tail: Tail; wrap: boolean; words: string; only: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  useLayoutEffect(() => {
    const element = box.current!;
    if (atEnd.current) element.scrollTop = element.scrollHeight;
  }, [tail.log, wrap, only]);
  const { log } = tail;
  return (
    <div
      class={`log ${wrap ? "log-wrap" : ""}`}
      ref={box}
      tabIndex={0}
      role="log"
      aria-live="off"
      aria-label="Log"
      onScroll={() => {
        const e = box.current!;
        atEnd.current = e.scrollTop + e.clientHeight >= e.scrollHeight - 30;
      }}
    >
      {log.dropped > 0 && <div class="log-line dim">{withCommas(log.dropped)} earlier lines are not kept here</div>}
      {log.blocks.map((block) => (
        <LogBlock key={block.id} block={block} words={words} only={only} />
      ))}
      {log.partial && !only && <div class="log-line">{log.partial}</div>}
    </div>
  );
}

function OneLog({ path, log: newest, tools }: { path: string; log: Log; tools: ComponentChildren }) {
  const [log] = useState(newest); // a log that was live is followed to its end, and not read anew when its pod ends
  const [paused, setPaused] = useState(false);
  const [wrap, setWrap] = useState(false);
  const [only, setOnly] = useState(false);
  const [words, setWords] = useState("");
  const [container, setContainer] = useState(log.containers?.[0] ?? "");
  const tail = useTail(path, log, container, paused);
  const found = useMemo(() => countMatches(tail.log, words), [tail.log, words]);
  const empty = tail.log.blocks.length === 0 && tail.log.partial === "";
  return (
    <>
      <div class="panel-tools log-tools">
        {tools}
        {(log.containers ?? []).length > 1 && (
          <select aria-label="Container" value={container} onChange={(event) => setContainer(event.currentTarget.value)}>
            {log.containers!.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        )}
        <label class="search">
          <Icon name="search" size={14} />
          <span class="sr-only">Search in the log</span>
          <input
            type="search"
            placeholder="Search in the log…"
            value={words}
            spellcheck={false}
            onInput={(event) => setWords(event.currentTarget.value)}
          />
        </label>
        {words && (
          <span class="dim" role="status">
            {withCommas(found)} {found === 1 ? "line" : "lines"}
          </span>
        )}
        <label class="check">
          <input type="checkbox" checked={only} disabled={words === ""} onChange={(event) => setOnly(event.currentTarget.checked)} />
          Only these
        </label>
        <label class="check">
          <input type="checkbox" checked={wrap} onChange={(event) => setWrap(event.currentTarget.checked)} />
          Wrap
        </label>
        <span class="gap" />
        {log.live && !tail.ended && (
          <span class={`live ${paused || !tail.connected ? "" : "live-on"}`}>
            {paused ? "paused" : tail.connected ? "live" : "reconnecting"}
          </span>
        )}
        {tail.ended && <span class="dim">ended</span>}
        {log.live && !tail.ended && (
          <button type="button" class="button small" aria-pressed={paused} onClick={() => setPaused(!paused)}>
            <Icon name={paused ? "play" : "pause"} size={14} />
            {paused ? "Go on" : "Pause"}
          </button>
        )}
      </div>
      {tail.error && <ErrorBox error={tail.error} />}
      {empty && !tail.error ? <Empty title="Nothing in this log yet" /> : <Follow tail={tail} wrap={wrap} words={words} only={only} />}
    </>
  );
}

export function Logs({ job, path, params }: TabProps) {
  const logs = useResource((signal) => getLogs(path, signal), [path]);
  useFollow(logs.reload, job.version);
  const choose = ({ pod, member }: Log) =>
    replaceAddress(jobHref(job.row.namespace, job.row.name, "logs", new URLSearchParams({ pod, member })));
  return (
    <section class="panel panel-log" aria-label="Logs">
      <Loaded resource={logs} what="the list of logs">
        {({ logs: list }) => {
          // A pod that was chosen stays while it is there; else the newest of its member, or of the first.
          const newest = (member: string | null | undefined) => [...list].reverse().find((log) => log.member === member);
          const wanted = list.find((log) => log.pod === params.get("pod")) ?? newest(params.get("member")) ?? newest(list[0]?.member);
          if (!wanted)
            return (
              <Empty title="No logs yet">
                <p class="dim">They come with the job's first pods.</p>
              </Empty>
            );
          return (
            <OneLog
              key={wanted.pod}
              path={path}
              log={wanted}
              tools={
                <select aria-label="Member" value={wanted.pod} onChange={(event) => choose(list[event.currentTarget.selectedIndex]!)}>
                  {list.map((log) => (
                    <option key={log.pod} value={log.pod}>
                      {log.member}
                      {log.node ? ` on ${log.node}` : ""}
                      {log.attempt ? ` (attempt ${log.attempt})` : ""}
                      {log.live ? "" : ", ended"}
                    </option>
                  ))}
                </select>
              }
            />
          );
        }}
      </Loaded>
    </section>
  );
}
