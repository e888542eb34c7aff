// What each tab of a job is given.

import type { ActionName, Job } from "../../api/types.ts";
import type { Cell } from "../../state/cell.ts";

export interface TabProps {
  job: Job;
  path: string; // of the API
  params: URLSearchParams;
  newer: Cell<number>; // counts the stream's words that there are newer points
  ask(action: ActionName, member?: string): void;
}
