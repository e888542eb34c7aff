import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodTemplate, TrainingJob } from "../../../../dashboard/src/api/types.ts";
import { keepsCheckpoints } from "../../../../dashboard/src/model/checkpoints.ts";

const CLAIM = { name: "disk", persistentVolumeClaim: { claimName: "c" } };

function template(volumes: object[], mounts: { name: string; mountPath: string }[], workingDir?: string): PodTemplate {
  const sidecar = { name: "sidecar", volumeMounts: [{ name: "disk", mountPath: "/paceline/checkpoints" }] };
  const trainer = { name: "trainer", volumeMounts: mounts, ...(workingDir ? { workingDir } : {}) };
  return { spec: { volumes, containers: [sidecar, trainer] } };
}

const jobOf = (worker: PodTemplate, location?: string): TrainingJob => ({
  spec: { replicaSpecs: { Worker: { template: worker } }, training: {}, ...(location ? { checkpoint: { location } } : {}) },
});
const keptAt = (mountPath: string, location?: string, volumes: object[] = [CLAIM]) =>
  keepsCheckpoints(jobOf(template(volumes, [{ name: "disk", mountPath }]), location));

test("CheckpointsStayOnAVolumeThatIsNotThePodsOwn", () => {
  assert.equal(keepsCheckpoints(jobOf({})), false);
  assert.equal(keepsCheckpoints(jobOf(template([CLAIM], []))), false);
  assert.equal(keptAt("/paceline"), true);
  assert.equal(keptAt("/paceline/checkpoints/"), true);
  assert.equal(keptAt("/", "/data/checkpoints"), true);
  assert.equal(keptAt("/"), false); // the work folder lies nearer
  assert.equal(keptAt("/paceline/check"), false);
  assert.equal(keptAt("//paceline/.", "/./paceline/x/../checkpoints/"), true);
  assert.equal(keptAt("/data", "/data/../tmp"), false);
  assert.equal(keepsCheckpoints(jobOf(template([{ name: "paceline", hostPath: { path: "/srv" } }], []))), true);
  for (const own of [[{ name: "disk", emptyDir: {} }], [{ name: "disk", ephemeral: {} }], []])
    assert.equal(keptAt("/paceline", undefined, own), false);
});

test("LocationOfCheckpointsIsAPathOrAUrl", () => {
  assert.equal(keptAt("/paceline", "file:///elsewhere"), false);
  assert.equal(keptAt("/paceline", "file:///%70aceline/my%20own"), true);
  assert.equal(keptAt("/elsewhere", "s3://elsewhere"), true); // an error that is told elsewhere
  assert.equal(keptAt("/data", "checkpoints"), true); // the image's own directory may be on the volume
  const inside = (folder: string, location: string) =>
    keepsCheckpoints(jobOf(template([CLAIM], [{ name: "disk", mountPath: "/data" }], folder), location));
  assert.equal(inside("/data", "checkpoints"), true);
  assert.equal(inside("/srv", "checkpoints"), false);
});

test("TemplateOfRankZeroDecides", () => {
  const kept = template([{ name: "paceline", nfs: {} }], []);
  const roles = { Chief: { replicas: 1 }, worker: { template: kept } };
  assert.equal(keepsCheckpoints({ spec: { replicaSpecs: roles, training: {} } }), false);
  assert.equal(keepsCheckpoints({ spec: { replicaSpecs: { ...roles, Chief: { template: kept }, worker: {} }, training: {} } }), true);
  assert.equal(keepsCheckpoints({ spec: { replicaSpecs: roles } }), true); // a program of its own saves by itself
});
