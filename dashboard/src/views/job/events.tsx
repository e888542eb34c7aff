// The job's events, the newest first.

import { getEvents } from "../../api/client.ts";
import { useFollow, useResource } from "../../state/resource.ts";
import { Age, Empty, Exact, Loaded } from "../../components/common.tsx";
import { Icon } from "../../components/icons.tsx";
import type { TabProps } from "./tab.ts";

export function Events({ job, path }: TabProps) {
  const events = useResource((signal) => getEvents(path, signal), [path]);
  useFollow(events.reload, job.version);
  return (
    <section class="panel" aria-label="Events">
      <Loaded resource={events} what="events">
        {({ events: list }) =>
          list.length === 0 ? (
            <Empty title="No events yet" />
          ) : (
            <div class="scroll-x" tabIndex={0} role="region" aria-label="Events of the job">
              <table class="plain events">
                <thead>
                  <tr>
                    <th scope="col">Age</th>
                    <th scope="col">When</th>
                    <th scope="col">Reason</th>
                    <th scope="col">Object</th>
                    <th scope="col">Message</th>
                  </tr>
                </thead>
                <tbody>
                  {[...list].reverse().map((event, i) => (
                    <tr key={list.length - i} class={event.type === "Warning" ? "is-warning" : ""}>
                      <td class="nowrap">
                        <Age time={event.time} />
                      </td>
                      <td class="nowrap dim">
                        <Exact time={event.time} />
                      </td>
                      <td class="nowrap">
                        {event.type === "Warning" && <Icon name="warning" size={13} />} {event.reason}
                        {(event.count ?? 1) > 1 && <span class="dim"> ×{event.count}</span>}
                      </td>
                      <td class="nowrap dim">{event.object}</td>
                      <td>{event.message}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Loaded>
    </section>
  );
}
