// The job's members: where they run, where their time goes, and what can be done about one.

import type { Member } from "../../api/types.ts";
import * as text from "../../format/numbers.ts";
import { barShares, byRank, gpuErrors, memberName, membersOf, PARTS, partMs, totalMs } from "../../model/members.ts";
import { jobHref } from "../../model/route.ts";
import { Empty } from "../../components/common.tsx";
import { Icon } from "../../components/icons.tsx";
import { ActionButton } from "./actions.tsx";
import type { TabProps } from "./tab.ts";

function TimeBar({ member, longest }: { member: Member; longest: number }) {
  const words = PARTS.filter((part) => partMs(member, part) > 0)
    .map((part) => `${part} ${text.ms(partMs(member, part))} ms`)
    .join(", ");
  return (
    <span class="stack" title={words} role="img" aria-label={words || "no times yet"}>
      {barShares(member, longest).map(({ part, share }) => (
        <i key={part} class={`part part-${part}`} style={{ width: `${(share * 100).toFixed(2)}%` }} />
      ))}
    </span>
  );
}

function GpuCell({ member }: { member: Member }) {
  const { gpu } = member;
  if (!gpu) return <td class="faint">-</td>;
  const memory = gpu.memoryUsedMib !== undefined && gpu.memoryTotalMib ? gpu.memoryUsedMib / gpu.memoryTotalMib : undefined;
  const errors = gpuErrors(gpu);
  const slowed = gpu.slowdowns ?? [];
  return (
    <td
      class="nowrap"
      title={[gpu.name, gpu.powerWatts !== undefined && `${text.fixed(gpu.powerWatts, 0)} W`, ...slowed, errors].filter(Boolean).join("\n")}
    >
      {text.percent(gpu.utilization, 0)} <span class="dim">mem {text.percent(memory, 0)}</span>
      {gpu.temperatureCelsius !== undefined && <span class="dim"> {gpu.temperatureCelsius} °C</span>}
      {slowed.length > 0 && <span class="tag tag-warning">{slowed[0]}</span>}
      {errors && <span class="tag tag-error">{errors}</span>}
    </td>
  );
}

function LoadCell({ member: { server, staleness } }: { member: Member }) {
  if (server)
    return (
      <td class="nowrap">
        {text.percent(server.load, 0)} <span class="dim">queue {text.withCommas(server.queue ?? 0)}</span>
      </td>
    );
  if (!staleness) return <td class="faint">-</td>;
  return (
    <td
      class="nowrap"
      title={`${text.withCommas(staleness.applied ?? 0)} gradients applied, ${text.withCommas(staleness.dropped ?? 0)} dropped`}
    >
      stale {text.fixed(staleness.mean ?? 0, 2)} <span class="dim">max {text.withCommas(staleness.max ?? 0)}</span>
    </td>
  );
}

function Line({
  member,
  job,
  longest,
  slow,
  newest,
  ask,
}: { member: Member; longest: number; slow: boolean; newest: number } & Pick<TabProps, "job" | "ask">) {
  const name = memberName(member);
  const behind = member.rank >= 0 && member.step !== undefined && newest - member.step > 2;
  const params = new URLSearchParams({ member: name });
  return (
    <tr class={slow ? "is-warning" : ""}>
      <td class="number">{member.rank >= 0 ? member.rank : "-"}</td>
      <th scope="row" class="nowrap">
        {slow && <Icon name="warning" size={13} />}
        {name}
      </th>
      <td class="nowrap">{member.host ?? "-"}</td>
      <td class="nowrap dim pod">{member.pod ?? (member.pid ? `pid ${member.pid}` : "-")}</td>
      <td>{member.phase ?? "-"}</td>
      <td
        class={`number ${behind ? "short" : ""}`}
        title={behind ? `${text.withCommas(newest - member.step!)} steps behind its newest` : undefined}
      >
        {member.server ? "-" : text.withCommas(member.step)}
      </td>
      <td class="wide">
        <TimeBar member={member} longest={longest} />
      </td>
      <td class="number">{text.ms(totalMs(member))}</td>
      <GpuCell member={member} />
      <LoadCell member={member} />
      <td class="row-actions">
        <a class="button small" href={jobHref(job.row.namespace, job.row.name, "logs", params)} aria-label={`Log of ${name}`}>
          Log
        </a>
        {member.role !== "ps" && member.role !== "evaluator" && (
          <ActionButton
            job={job}
            action="replace"
            icon="replace"
            title="Replace"
            small
            label={`Replace ${name}`}
            onAsk={() => ask("replace", name)}
          />
        )}
      </td>
    </tr>
  );
}

export function Members({ job, ask }: TabProps) {
  const members = byRank(membersOf(job.object));
  if (members.length === 0)
    return (
      <Empty title="No members yet">
        <p class="dim">They come when the job's pods have started.</p>
      </Empty>
    );
  const longest = members.reduce((most, member) => Math.max(most, totalMs(member)), 0);
  const slow = new Set((job.object.status?.stragglers ?? []).filter((each) => each.kind !== "AllSlow").map(memberName));
  const newest = members.reduce((most, member) => Math.max(most, member.step ?? 0), 0);
  return (
    <section class="panel" aria-label="Members">
      <p class="parts-legend" aria-hidden="true">
        Where a step's time goes:{" "}
        {PARTS.map((part) => (
          <span key={part}>
            <i class={`swatch part-${part}`} />
            {part}
          </span>
        ))}
      </p>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Members of the job">
        <table class="plain members">
          <thead>
            <tr>
              <th scope="col" class="number">
                Rank
              </th>
              <th scope="col">Member</th>
              <th scope="col">Node</th>
              <th scope="col">Pod</th>
              <th scope="col">Phase</th>
              <th scope="col" class="number">
                Step
              </th>
              <th scope="col">Time of a step</th>
              <th scope="col" class="number">
                Total ms
              </th>
              <th scope="col">GPU</th>
              <th scope="col">Load, staleness</th>
              <th scope="col">
                <span class="sr-only">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {members.map((member) => (
              <Line
                key={`${member.role}${member.index}`}
                member={member}
                job={job}
                longest={longest}
                slow={slow.has(memberName(member))}
                newest={newest}
                ask={ask}
              />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
