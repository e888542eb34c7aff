// What one can do to a job. A button that is not allowed says why, and does nothing.

import { useState } from "preact/hooks";
import { act, jobPath } from "../../api/client.ts";
import type { ActionName, Job } from "../../api/types.ts";
import { withCommas } from "../../format/numbers.ts";
import { workersOf } from "../../model/members.ts";
import { exactName, jobsHref } from "../../model/route.ts";
import { Dialog, type Question } from "../../components/dialog.tsx";
import { Icon, type IconName } from "../../components/icons.tsx";

const BUTTONS: readonly (readonly [ActionName, IconName, string])[] = [
  ["suspend", "pause", "Suspend"],
  ["resume", "play", "Resume"],
  ["scale", "scale", "Scale"],
  ["checkpoint", "save", "Checkpoint"],
  ["delete", "trash", "Delete"],
];

function questionFor(action: ActionName, job: Job, member?: string): Question {
  const { namespace, name, uid } = job.row;
  const path = jobPath(namespace, exactName(name, uid)); // the one that is shown, whatever has its name when the answer is given
  const run = (body?: unknown) => () => act(path, action, body);
  const own = (
    <b>
      {namespace}/{name}
    </b>
  );
  const kept = job.keepsCheckpoints !== false;
  const steps = job.row.step ?? 0;
  switch (action) {
    case "suspend":
      return {
        title: "Suspend this job?",
        confirm: "Suspend",
        run: run(),
        danger: !kept && steps > 0,
        text: kept ? (
          <p>{own} saves a checkpoint, and its members end. It goes on from there when it is resumed.</p>
        ) : (
          <p>
            The members of {own} end, and its checkpoints lie in their pods and go with them. It begins anew at step 0 when it is resumed
            {steps > 0 && (
              <>
                : <b>{steps === 1 ? "1 step is" : `${withCommas(steps)} steps are`} lost</b>
              </>
            )}
            .
          </p>
        ),
      };
    case "resume":
      return {
        title: "Resume this job?",
        confirm: "Resume",
        run: run(),
        text: (
          <p>
            {own} {kept ? "goes on from its newest checkpoint" : "begins anew at step 0: its checkpoints went with its pods"}.
          </p>
        ),
      };
    case "checkpoint":
      return {
        title: "Save a checkpoint now?",
        confirm: "Save",
        run: run(),
        text: <p>Rank 0 of {own} saves at the end of the step; the others may wait for it.</p>,
      };
    case "replace":
      return {
        title: `Replace ${member}?`,
        confirm: "Replace",
        run: run({ member }),
        text: (
          <p>
            A successor starts elsewhere, catches up while the others train, and takes the place of <b>{member}</b>.
          </p>
        ),
      };
    case "scale": {
      const now = workersOf(job.object);
      const { least = 1, most = now } = job.actions?.scale ?? {};
      return {
        title: "How many workers?",
        confirm: "Scale",
        number: { label: "Workers", value: now, least, most },
        text: <p>{own} goes on with another number of workers. The global batch stays the same.</p>,
        run: (replicas) => act(path, action, { replicas }),
      };
    }
    case "delete":
      return {
        title: "Delete this job?",
        confirm: "Delete",
        danger: true,
        typed: { label: "Type its name:", value: name },
        text: <p>{own}, its pods and its logs go, and nothing brings them back.</p>,
        run: async () => {
          const said = await act(path, action);
          location.hash = jobsHref();
          return said;
        },
      };
  }
}

export function useActions(job: Job) {
  const [question, setQuestion] = useState<Question | null>(null);
  return {
    ask: (action: ActionName, member?: string) => setQuestion(questionFor(action, job, member)),
    dialog: question && <Dialog question={question} close={() => setQuestion(null)} />,
  };
}

export function ActionButton({
  job,
  action,
  icon,
  title,
  onAsk,
  small = false,
  label,
}: {
  job: Job;
  action: ActionName;
  icon: IconName;
  title: string;
  onAsk: () => void;
  small?: boolean;
  label?: string;
}) {
  const allowed = job.actions?.[action];
  const why = allowed?.allowed === true ? "" : (allowed?.why ?? "the server does not offer it");
  const may = why === "";
  const id = `why-${action}-${(label ?? title).replace(/\W+/g, "-")}`;
  return (
    <span class="action" title={may ? undefined : `${title}: ${why}`}>
      <button
        type="button"
        class={`button ${small ? "small" : ""} ${action === "delete" ? "danger-quiet" : ""}`}
        aria-disabled={!may}
        aria-label={label}
        aria-describedby={may ? undefined : id}
        onClick={() => {
          if (may) onAsk();
        }}
      >
        <Icon name={icon} size={14} />
        <span>{title}</span>
      </button>
      {!may && (
        <span class="why" id={id} role="note">
          {why}
        </span>
      )}
    </span>
  );
}

export function Actions({ job, ask }: { job: Job; ask: (action: ActionName) => void }) {
  // Of suspend and resume only one ever applies.
  const hidden: ActionName = job.row.suspended || job.row.phase === "Suspended" ? "suspend" : "resume";
  return (
    <div class="actions" role="group" aria-label="Actions">
      {BUTTONS.filter(([action]) => action !== hidden).map(([action, icon, title]) => (
        <ActionButton key={action} job={job} action={action} icon={icon} title={title} onAsk={() => ask(action)} />
      ))}
    </div>
  );
}
