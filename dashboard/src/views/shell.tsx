// The frame around every view: head, connection, what has just happened, and which view the address asks for.

import { useEffect, useState } from "preact/hooks";
import type { Session } from "../api/types.ts";
import { exactTime, zoneName } from "../format/times.ts";
import { compareHref, jobsHref, type Route } from "../model/route.ts";
import { askSessionUntilThere, connected, dismissToast, now, route, session, toasts } from "../state/app.ts";
import { useCell } from "../state/cell.ts";
import { theme, zone, type Theme } from "../state/preferences.ts";
import { ErrorBox, Empty, Loading } from "../components/common.tsx";
import { CompareView } from "./compare.tsx";
import { Icon, Logo, type IconName } from "../components/icons.tsx";
import { JobView } from "./job/job.tsx";
import { JobsView } from "./jobs.tsx";
import { SignIn } from "./signin.tsx";

const THEMES: Record<Theme, { next: Theme; icon: IconName; text: string }> = {
  auto: { next: "light", icon: "auto", text: "Colours as the system's" },
  light: { next: "dark", icon: "sun", text: "Light colours" },
  dark: { next: "auto", icon: "moon", text: "Dark colours" },
};

function ZoneSwitch() {
  const where = useCell(zone);
  const name = zoneName(now.value, where);
  return (
    <button
      type="button"
      class="quiet"
      title={`Times are shown in ${name}. Now: ${exactTime(now.value, where)}`}
      aria-label={`Time zone: ${where === "utc" ? "UTC" : `local, ${name}`}. Switch to ${where === "utc" ? "local time" : "UTC"}`}
      onClick={() => {
        zone.value = where === "utc" ? "local" : "utc";
      }}
    >
      {name}
    </button>
  );
}

function ThemeSwitch() {
  const { next, icon, text } = THEMES[useCell(theme)];
  return (
    <button
      type="button"
      class="quiet"
      title={text}
      aria-label={`${text}. Switch to ${THEMES[next].text.toLowerCase()}`}
      onClick={() => {
        theme.value = next;
      }}
    >
      <Icon name={icon} />
    </button>
  );
}

function Head({ current, signedIn }: { current: Route; signedIn: Session | null }) {
  const seen = signedIn?.namespaces;
  const cluster = signedIn?.cluster ?? (seen?.length === 1 ? `namespace ${seen[0]}` : "cluster");
  const place = signedIn?.place === "Cluster" ? cluster : "this machine";
  const at = (view: Route["view"]) => (current.view === view ? "page" : undefined);
  return (
    <header class="head">
      <a class="brand" href={jobsHref()} aria-label="Paceline: all jobs">
        <Logo />
        <span>Paceline</span>
      </a>
      {signedIn && (
        <span class="place" title={`Paceline ${signedIn.version}`}>
          {place}
        </span>
      )}
      {signedIn && (
        <nav aria-label="Views">
          <a href={jobsHref()} aria-current={at("jobs")}>
            Jobs
          </a>
          <a href={compareHref()} aria-current={at("compare")}>
            Compare
          </a>
        </nav>
      )}
      <span class="gap" />
      {signedIn?.user && (
        <span class="user" title="Signed in as">
          {signedIn.user}
        </span>
      )}
      <ZoneSwitch />
      <ThemeSwitch />
    </header>
  );
}

const GONE = 5000; // ms without a connection: the server of this machine has ended most likely

// The dashboard of this machine lives no longer than the command that serves it; that of a cluster comes back.
function Banner({ local }: { local: boolean }) {
  const up = useCell(connected);
  const [gone, setGone] = useState(false);
  useEffect(() => {
    setGone(false);
    if (up || !local) return;
    const timer = setTimeout(() => setGone(true), GONE);
    return () => clearTimeout(timer);
  }, [up, local]);
  return (
    <div role="status" class="banner-place">
      {!up && gone && (
        <div class="banner">
          <Icon name="warning" />
          <span>
            The server of this page has ended, or can't be reached; what you see is the last that it told.{" "}
            <code>paceline run --dashboard</code> ends with its run. <code>paceline dashboard</code> shows all runs of this machine: open
            the address that it prints.
          </span>
        </div>
      )}
      {!up && !gone && (
        <div class="banner">
          <span class="spinner" aria-hidden="true" />
          Connection lost. What you see may be old; the page reconnects by itself.
        </div>
      )}
    </div>
  );
}

function Toasts() {
  const shown = useCell(toasts);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.map(({ id, kind, text, help }) => (
        <div key={id} class={`toast toast-${kind}`}>
          <Icon name={kind === "done" ? "succeeded" : "warning"} />
          <div>
            <p>{text}</p>
            {help && <p class="dim">{help}</p>}
          </div>
          <button type="button" class="quiet" aria-label="Dismiss" onClick={() => dismissToast(id)}>
            <Icon name="close" size={12} />
          </button>
        </div>
      ))}
    </div>
  );
}

function View({ current, signedIn }: { current: Route; signedIn: Session }) {
  switch (current.view) {
    case "jobs":
      return <JobsView params={current.params} session={signedIn} />;
    case "job":
      return <JobView key={`${current.namespace}/${current.name}`} route={current} />;
    case "compare":
      return <CompareView params={current.params} />;
    case "unknown":
      return (
        <Empty title="There is no such page">
          <p>
            <a href={jobsHref()}>See all jobs</a>
          </p>
        </Empty>
      );
  }
}

function titleOf(current: Route): string {
  if (current.view === "job") return `${current.name} · Paceline`;
  return current.view === "compare" ? "Compare · Paceline" : "Jobs · Paceline";
}

export function Shell() {
  const state = useCell(session);
  const current = useCell(route);
  useEffect(() => {
    document.title = titleOf(current);
  }, [current]);
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        Skip to the content
      </a>
      <Head current={current} signedIn={state.kind === "in" ? state.session : null} />
      <Banner local={state.kind === "in" && state.session.place === "Local"} />
      <main id="main" tabIndex={-1}>
        {state.kind === "asking" && <Loading what="Paceline" />}
        {state.kind === "unreachable" && <ErrorBox error={state.error} retry={() => void askSessionUntilThere()} />}
        {state.kind === "out" && <SignIn error={state.error} />}
        {state.kind === "in" && <View current={current} signedIn={state.session} />}
      </main>
      <Toasts />
    </>
  );
}
