// Whether a job's checkpoints outlive its pods: kube::keeps_checkpoints of the controller. On a cluster they do where rank 0's template mounts a volume
// of its own at their folder.

import type { PodTemplate, TrainingJob } from "../api/types.ts";
import { roleOf } from "./members.ts";

const WORK_FOLDER = "/paceline"; // an emptyDir, unless the template has a volume of the name
const WORK_VOLUME = "paceline";

export function keepsCheckpoints(object: TrainingJob): boolean {
  if (object.spec?.training === undefined) return true; // it saves by itself, or not
  const folder = locationPath(object.spec.checkpoint?.location || `${WORK_FOLDER}/checkpoints`);
  return folder === null || keepsFiles((roleOf(object, "chief") ?? roleOf(object, "worker"))?.template, folder);
}

// Null: not a path; the job's error is told elsewhere.
function locationPath(location: string): string | null {
  const at = location.indexOf("://");
  if (at < 0) return location;
  if (!location.startsWith("file:///")) return null;
  try {
    return decodeURIComponent(location.slice(at + 3));
  } catch {
    return null;
  }
}

function keepsFiles(template: PodTemplate | undefined, path: string): boolean {
  const containers = template?.spec?.containers ?? [];
  const trainer = containers.find((each) => each.name === "trainer") ?? containers[0];
  const folder = trainer?.workingDir || "";
  if (!path.startsWith("/") && folder === "") return true; // in the image's own working directory
  const file = resolved(path.startsWith("/") ? path : `${folder}/${path}`);
  let mounted = "";
  let name: string | undefined;
  for (const mount of [{ mountPath: WORK_FOLDER, name: WORK_VOLUME }, ...(trainer?.volumeMounts ?? [])]) {
    const place = resolved(mount.mountPath ?? "");
    if (place.length < mounted.length || (place !== "/" && !`${file}/`.startsWith(`${place}/`))) continue;
    mounted = place;
    name = mount.name;
  }
  const volume = (template?.spec?.volumes ?? []).find((each) => name !== undefined && each.name === name);
  return volume !== undefined && !volume.emptyDir && !volume.ephemeral;
}

function resolved(path: string): string {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return `/${parts.join("/")}`;
}
