// What happened to the job: lanes for a first look, a list for the words.

import { useState } from "preact/hooks";
import { getTimeline } from "../../api/client.ts";
import type { Job, TimelineItem } from "../../api/types.ts";
import { Lanes } from "../../charts/lanes.tsx";
import { humanSeconds, withCommas } from "../../format/numbers.ts";
import { parseTime } from "../../format/times.ts";
import { kindsOf } from "../../model/timeline.ts";
import { useFollow, useResource } from "../../state/resource.ts";
import { Age, Empty, Exact, Loaded } from "../../components/common.tsx";
import type { TabProps } from "./tab.ts";

function Item({ item, chosen }: { item: TimelineItem; chosen: boolean }) {
  return (
    <li class={`happening k-${item.kind.toLowerCase()} s-${(item.severity ?? "Info").toLowerCase()} ${chosen ? "chosen" : ""}`}>
      <span class="happening-mark" aria-hidden="true" />
      <div class="happening-when">
        {item.time === undefined && item.seconds !== undefined ? (
          <span>after {humanSeconds(item.seconds)}</span>
        ) : (
          <>
            <Age time={item.time} suffix=" ago" />
            <small class="dim">
              <Exact time={item.time} />
            </small>
          </>
        )}
      </div>
      <div class="happening-what">
        <p>
          <span class="tag">{item.kind}</span> <b>{item.title}</b>
          {item.step !== undefined && <span class="dim"> step {withCommas(item.step)}</span>}
          {item.endSeconds !== undefined && item.seconds !== undefined && (
            <span class="dim"> for {humanSeconds(item.endSeconds - item.seconds)}</span>
          )}
        </p>
        {item.text && <p class="dim">{item.text}</p>}
        {(item.members ?? []).length > 0 && (
          <p class="members-line">
            {item.members!.map((name) => (
              <span class="tag" key={name}>
                {name}
              </span>
            ))}
          </p>
        )}
      </div>
    </li>
  );
}

const MANY: ReadonlySet<string> = new Set(["Evaluation"]); // a thousand of them would hide what matters: shown when asked for

function Found({ items, elapsed }: { items: TimelineItem[]; elapsed: number }) {
  const [hidden, setHidden] = useState(MANY);
  const [chosen, setChosen] = useState<number | null>(null);
  const toggle = (kind: string) => {
    const next = new Set(hidden);
    if (!next.delete(kind)) next.add(kind);
    setHidden(next);
  };
  const shown = items
    .map((item, index) => ({ item, index }))
    .filter(({ item }) => !hidden.has(item.kind))
    .reverse();
  return (
    <>
      <Lanes items={items} now={elapsed} hidden={hidden} onChoose={setChosen} />
      <div class="chips" role="group" aria-label="Show by kind">
        {kindsOf(items).map((kind) => (
          <button
            type="button"
            key={kind}
            class={`chip k-${kind.toLowerCase()}`}
            aria-pressed={!hidden.has(kind)}
            onClick={() => toggle(kind)}
          >
            <span class="dot" aria-hidden="true" />
            {kind} <b>{items.filter((item) => item.kind === kind).length}</b>
          </button>
        ))}
      </div>
      <ol class="happenings" reversed>
        {shown.map(({ item, index }) => (
          <Item key={index} item={item} chosen={index === chosen} />
        ))}
      </ol>
    </>
  );
}

// Seconds since the job was made. A row's are since the newest start, be it a resumption.
function elapsedOf(job: Job): number {
  const created = parseTime(job.row.created);
  const started = parseTime(job.object.status?.startTime) ?? created;
  return (job.row.elapsedSeconds ?? 0) + (created === null || started === null ? 0 : (started - created) / 1000);
}

export function Timeline({ job, path }: TabProps) {
  const timeline = useResource((signal) => getTimeline(path, signal), [path]);
  useFollow(timeline.reload, job.version);
  return (
    <section class="panel" aria-label="Timeline">
      <Loaded resource={timeline} what="the timeline">
        {({ items }) =>
          items.length === 0 ? <Empty title="Nothing has happened yet" /> : <Found items={items} elapsed={elapsedOf(job)} />
        }
      </Loaded>
    </section>
  );
}
