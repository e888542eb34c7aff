// The timeline's lanes: one for each kind, over the time since the job began.

import type { TimelineItem } from "../api/types.ts";
import { humanSeconds } from "../format/numbers.ts";
import { layoutTimeline, type Mark } from "../model/timeline.ts";

const TICKS = 5;

function words(mark: Mark): string {
  const more = mark.count > 1 ? ` and ${mark.count - 1} more` : "";
  return `${mark.item.title}${more}, after ${humanSeconds(mark.item.seconds)}`;
}

function classOf(kind: string, mark: Mark): string {
  const phase = kind === "Phase" ? ` p-${(mark.item.phase ?? "Unknown").toLowerCase()}` : "";
  return `mark ${mark.to === null ? "mark-point" : "mark-span"} s-${(mark.item.severity ?? "Info").toLowerCase()}${phase}`;
}

export function Lanes({
  items,
  now,
  hidden,
  onChoose,
}: {
  items: TimelineItem[];
  now: number;
  hidden: ReadonlySet<string>;
  onChoose: (index: number | null) => void;
}) {
  const { lanes, begin, end } = layoutTimeline(items, now);
  const shown = lanes.filter((lane) => !hidden.has(lane.kind));
  const counts = lanes.map((lane) => `${lane.marks.length} ${lane.kind}`);
  const percent = (share: number) => `${(share * 100).toFixed(3)}%`;
  return (
    <figure
      class="lanes"
      role="img"
      aria-label={`Timeline of ${humanSeconds(end - begin)}: ${counts.join(", ")}. The list below has the words.`}
    >
      {shown.map((lane) => (
        <div class={`lane k-${lane.kind.toLowerCase()}`} key={lane.kind}>
          <span class="lane-name">{lane.kind}</span>
          <div class="lane-line">
            {lane.marks.map((mark) => (
              <span
                key={mark.index}
                title={words(mark)}
                onPointerEnter={() => onChoose(mark.index)}
                onPointerLeave={() => onChoose(null)}
                class={classOf(lane.kind, mark)}
                style={
                  mark.to === null
                    ? { left: percent(mark.from) }
                    : { left: percent(mark.from), width: percent(Math.max(0.002, mark.to - mark.from)) }
                }
              >
                {lane.kind === "Phase" && <span class="mark-text">{mark.item.title}</span>}
              </span>
            ))}
          </div>
        </div>
      ))}
      <div class="lane lane-axis">
        <span class="lane-name" />
        <div class="lane-line">
          {Array.from({ length: TICKS + 1 }, (_, i) => (
            <span key={i} class="tick" style={{ left: percent(i / TICKS) }}>
              {humanSeconds(Math.round(begin + ((end - begin) * i) / TICKS))}
            </span>
          ))}
        </div>
      </div>
    </figure>
  );
}
