// One job: its head, which is always there, and the tab that the address asks for. Its stream brings the job; what a tab shows beside, the tab loads.

import { useEffect, useMemo, useState } from "preact/hooks";
import { getJob, jobPath } from "../../api/client.ts";
import type { Job } from "../../api/types.ts";
import { exactName, isPast, jobHref, jobsHref, TABS, type Route, type Tab } from "../../model/route.ts";
import { session } from "../../state/app.ts";
import { Cell, useCell } from "../../state/cell.ts";
import { hearJob } from "../../state/live.ts";
import { useResource } from "../../state/resource.ts";
import { Empty, ErrorBox, Loading } from "../../components/common.tsx";
import { useActions } from "./actions.tsx";
import { Events } from "./events.tsx";
import { JobHead } from "./head.tsx";
import { Logs } from "./logs.tsx";
import { Members } from "./members.tsx";
import { Overview } from "./overview.tsx";
import type { TabProps } from "./tab.ts";
import { Timeline } from "./timeline.tsx";
import { Yaml } from "./yaml.tsx";

const TITLES: Record<Tab, string> = {
  overview: "Overview",
  members: "Members",
  timeline: "Timeline",
  events: "Events",
  logs: "Logs",
  yaml: "YAML",
};

function Tabs({ route }: { route: Extract<Route, { view: "job" }> }) {
  return (
    <nav class="tabs" aria-label="Of this job">
      {TABS.map((tab) => (
        <a key={tab} href={jobHref(route.namespace, route.name, tab)} aria-current={tab === route.tab ? "page" : undefined}>
          {TITLES[tab]}
        </a>
      ))}
    </nav>
  );
}

function Panel({ tab, ...props }: TabProps & { tab: Tab }) {
  switch (tab) {
    case "overview":
      return <Overview {...props} />;
    case "members":
      return <Members {...props} />;
    case "timeline":
      return <Timeline {...props} />;
    case "events":
      return <Events {...props} />;
    case "logs":
      return <Logs {...props} />;
    case "yaml":
      return <Yaml {...props} />;
  }
}

function Found({ job, route, path, newer }: { job: Job; route: Extract<Route, { view: "job" }>; path: string; newer: Cell<number> }) {
  const { ask, dialog } = useActions(job);
  return (
    <div class="job">
      <JobHead job={job} ask={ask} />
      <Tabs route={route} />
      <Panel tab={route.tab} job={job} path={path} params={route.params} newer={newer} ask={ask} />
      {dialog}
    </div>
  );
}

export function JobView({ route }: { route: Extract<Route, { view: "job" }> }) {
  const path = jobPath(route.namespace, route.name);
  const loaded = useResource((signal) => getJob(path, signal), [path]);
  const [live, setLive] = useState<Job | null | undefined>(undefined); // null: it has been deleted
  const newer = useMemo(() => new Cell(0), [path]);
  const there = loaded.data !== null;
  useEffect(() => {
    if (!there || isPast(route.name)) return;
    return hearJob(`${route.namespace}/${route.name}`, {
      onJob: setLive,
      onSeries: () => {
        ++newer.value;
      },
    });
  }, [path, there]);
  const job = live === undefined ? loaded.data : live;
  const inside = useCell(session);
  const kept = live === null && inside.kind === "in" && inside.session.history?.kept ? loaded.data?.row.uid : undefined;
  if (job) return <Found job={job} route={route} path={path} newer={newer} />;
  if (live === null || loaded.error?.code === "NotFound") {
    return (
      <Empty title={`There is no job ${route.namespace}/${route.name}`}>
        <p class="dim">It may have been deleted.</p>
        {kept && (
          <p>
            <a href={jobHref(route.namespace, exactName(route.name, kept))}>See what the history has of it</a>
          </p>
        )}
        <p>
          <a href={jobsHref()}>See all jobs</a>
        </p>
      </Empty>
    );
  }
  return loaded.error ? <ErrorBox error={loaded.error} retry={loaded.reload} /> : <Loading what="the job" />;
}
