// A job's head: what it is, how far, how fast, and in words what is wrong.

import type { ComponentChildren } from "preact";
import type { ActionName, Fault, Job, Requests, Straggler } from "../../api/types.ts";
import * as text from "../../format/numbers.ts";
import { memberName } from "../../model/members.ts";
import { compareHref, jobsHref } from "../../model/route.ts";
import { now } from "../../state/app.ts";
import { useCell } from "../../state/cell.ts";
import { Age, Bar, PhaseChip } from "../../components/common.tsx";
import { Icon } from "../../components/icons.tsx";
import { ActionButton, Actions } from "./actions.tsx";

function Figure({
  name,
  value,
  sub,
  title,
}: {
  name: string;
  value: ComponentChildren;
  sub?: ComponentChildren;
  title?: string | undefined;
}) {
  return (
    <div class="figure" title={title}>
      <dt>{name}</dt>
      <dd>
        {value}
        {sub !== undefined && <small>{sub}</small>}
      </dd>
    </div>
  );
}

function Figures({ job }: { job: Job }) {
  const { row, object } = job;
  const progress = object.status?.run ?? object.status?.progress;
  const ended = row.finished !== undefined;
  return (
    <dl class="figures">
      <Figure name="Loss" value={text.lossText(row.loss)} />
      {progress?.testAuc !== undefined ? (
        <Figure name="AUC" value={text.aucText(progress.testAuc)} />
      ) : (
        <Figure name="Accuracy" value={text.accuracyText(row.accuracy)} />
      )}
      {progress?.testLoss !== undefined && <Figure name="Test loss" value={text.lossText(progress.testLoss)} />}
      <Figure name="Samples/s" value={text.samplesPerSecond(row.samplesPerSecond)} />
      <Figure name="Steps/s" value={text.stepsPerSecond(row.stepsPerSecond)} />
      <Figure name="Goodput" value={text.goodputText(row.goodput)} title="The share of the time that went into steps that count" />
      <Figure name="Ready" value={row.members === undefined ? text.NONE : `${row.ready ?? 0} of ${row.members}`} />
      <Figure name="Restarts" value={row.restarts ?? text.NONE} />
      <Figure name="Time" value={text.humanSeconds(row.elapsedSeconds)} />
      {ended ? (
        <Figure name="Ended" value={<Age time={row.finished} suffix=" ago" />} />
      ) : (
        <Figure name="ETA" value={text.humanSeconds(row.etaSeconds)} />
      )}
    </dl>
  );
}

function Progress({ job: { row } }: { job: Job }) {
  return (
    <div class="job-progress">
      <Bar
        share={row.progress}
        label="Progress"
        tone={row.phase === "Failed" ? "bar-failed" : row.phase === "Succeeded" ? "bar-done" : ""}
      />
      <span class="job-progress-text">
        <b>{text.progressText(row.progress)}</b>
        {row.steps !== undefined && (
          <>
            {" "}
            step {text.withCommas(row.step)}/{text.withCommas(row.steps)}
          </>
        )}
        {row.epoch !== undefined && <span class="dim"> epoch {text.fixed(row.epoch, 1)}</span>}
      </span>
    </div>
  );
}

function StragglerNote({ job, straggler, ask }: { job: Job; straggler: Straggler; ask: (member: string) => void }) {
  const words = straggler.message ?? `${memberName(straggler)} is slow`;
  return (
    <div class="note note-warning">
      <Icon name="warning" />
      <div>
        <p>
          <b>{words}</b>
          {straggler.since && (
            <span class="dim">
              {" "}
              · found <Age time={straggler.since} suffix=" ago" />
            </span>
          )}
        </p>
        {straggler.evidence && !words.includes(straggler.evidence) && <p>{straggler.evidence}</p>}
        {straggler.why && (
          <p class="dim">
            {straggler.action}: {straggler.why}
          </p>
        )}
      </div>
      {straggler.kind !== "AllSlow" && straggler.action !== "Replace" && (
        <ActionButton job={job} action="replace" icon="replace" title="Replace" small onAsk={() => ask(memberName(straggler))} />
      )}
    </div>
  );
}

function FaultNote({ fault, failed, message }: { fault: Fault; failed: boolean; message?: string | undefined }) {
  const facts = [
    fault.pod && `pod ${fault.pod}`,
    fault.host && `on ${fault.host}`,
    fault.step !== undefined && `at step ${text.withCommas(fault.step)}`,
    fault.exitCode !== undefined && `exit code ${fault.exitCode}`,
    fault.signal !== undefined && `signal ${fault.signal}`,
  ].filter(Boolean);
  const told = failed && message ? message : "";
  const victims = (fault.victims ?? []).map(memberName);
  return (
    <div class={`note ${failed ? "note-error" : "note-quiet"}`}>
      <Icon name={failed ? "failed" : "restarting"} />
      <div>
        <p>
          <b>
            {failed ? "" : "Newest restart: "}
            {memberName(fault)}: {fault.kind ?? fault.cause}
          </b>{" "}
          <span class="dim">{facts.join(", ")}</span>
        </p>
        {told && <p>{told}</p>}
        {(fault.evidence ?? [])
          .filter((seen) => seen.detail && !told.includes(seen.detail))
          .map((seen, i) => (
            <p key={i} class="dim">
              {seen.kind}: {seen.detail}
            </p>
          ))}
        {victims.length > 0 && <p class="dim">As a consequence: {victims.join(", ")}</p>}
      </div>
    </div>
  );
}

const NEWS = 600_000; // ms, that the answer to a request is news

// What became of the newest requests; that of one which was carried out stands in the timeline.
function RequestNotes({ requests }: { requests: Requests }) {
  const at = useCell(now);
  const told = [
    ["Checkpoint", requests.checkpoint],
    ["Replacement", requests.replace],
  ] as const;
  return (
    <>
      {told.map(([what, request]) => {
        if (!request || request.outcome === "Done") return null;
        const open = request.outcome === "UnderWay";
        if (!open && at - Date.parse(request.at ?? "") > NEWS) return null;
        return (
          <div key={what} class={`note ${open ? "note-quiet" : "note-warning"}`}>
            <Icon name={open ? "save" : "warning"} />
            <div>
              <p>
                <b>
                  {what} by request{open ? "" : request.outcome === "Refused" ? " refused" : " failed"}:
                </b>{" "}
                {request.message}
              </p>
            </div>
          </div>
        );
      })}
    </>
  );
}

function Notes({ job, ask }: { job: Job; ask: (action: ActionName, member?: string) => void }) {
  const status = job.object.status ?? {};
  const failed = job.row.phase === "Failed";
  const warned = status.message !== undefined && job.row.warning?.includes(status.message);
  const rebalance = status.view?.rebalance?.message;
  return (
    <div class="notes">
      {job.row.deleted && (
        <div class="note note-quiet" role="note">
          <Icon name="trash" />
          <div>
            <p>
              <b>
                Deleted <Age time={job.row.deleted} suffix=" ago" />
              </b>{" "}
              This is what the history has of it; its logs and events are gone.
            </p>
          </div>
        </div>
      )}
      {job.row.warning && (
        <div class="note note-warning" role="note">
          <Icon name="warning" />
          <div>
            <p>{job.row.warning}</p>
          </div>
        </div>
      )}
      {(status.stragglers ?? []).map((each, i) => (
        <StragglerNote key={i} job={job} straggler={each} ask={(member) => ask("replace", member)} />
      ))}
      <RequestNotes requests={status.requests ?? {}} />
      {status.fault && <FaultNote fault={status.fault} failed={failed} message={status.message} />}
      {!status.fault && status.message && !warned && job.row.phase !== "Running" && job.row.phase !== "Succeeded" && (
        <div class={`note ${failed ? "note-error" : "note-quiet"}`}>
          <Icon name={failed ? "failed" : "warning"} />
          <div>
            <p>
              <b>{status.reason}</b> {status.message}
            </p>
          </div>
        </div>
      )}
      {rebalance && (status.stragglers ?? []).length === 0 && (
        <div class="note note-quiet">
          <Icon name="scale" />
          <div>
            <p>{rebalance}</p>
          </div>
        </div>
      )}
      {(job.hints ?? []).length > 0 && (
        <div class="note note-quiet">
          <Icon name="play" />
          <div>
            <p>
              <b>What to do</b>
            </p>
            <ul>
              {job.hints!.map((hint) => (
                <li key={hint}>{hint}</li>
              ))}
            </ul>
          </div>
        </div>
      )}
    </div>
  );
}

export function JobHead({ job, ask }: { job: Job; ask: (action: ActionName, member?: string) => void }) {
  const { row } = job;
  return (
    <section class="job-head" aria-label="The job">
      <div class="job-title">
        <a class="quiet back" href={jobsHref()} aria-label="All jobs" title="All jobs">
          <Icon name="back" />
        </a>
        <h1>
          <span class="dim namespace">{row.namespace}/</span>
          {row.name}
        </h1>
        <PhaseChip phase={row.phase} />
        <span class="job-facts dim">{[row.model, row.strategy, row.device].filter(Boolean).join(" · ")}</span>
        {row.deleted === undefined && (
          <a class="button small" href={compareHref(`${row.namespace}/${row.name}`)}>
            <Icon name="compare" size={14} />
            Compare
          </a>
        )}
        <span class="gap" />
        <Actions job={job} ask={ask} />
      </div>
      <Progress job={job} />
      <Figures job={job} />
      <Notes job={job} ask={ask} />
    </section>
  );
}
