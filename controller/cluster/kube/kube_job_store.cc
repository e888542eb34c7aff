#include "controller/cluster/kube/kube_job_store.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "base/status.h"
#include "controller/api/checkpoint_step.h"
#include "controller/cluster/kube/cached_files.h"
#include "controller/cluster/kube/job_object.h"
#include "controller/cluster/kube/resources.h"
#include "controller/cluster/kube/status_json.h"

namespace paceline::kube {

namespace {

constexpr std::size_t kRememberedSpecs = 100'000;  // more are parsed again
using api::kInvalidSpec;

bool is_refused(const api::Status& status) {
  return status.phase == api::Phase::kFailed && status.reason == kInvalidSpec;
}

bool has_begun(const api::Status& status) {
  return status.phase != api::Phase::kPending && status.phase != api::Phase::kSucceeded &&
         status.phase != api::Phase::kFailed;
}

// What became of a job that was refused before its spec was edited is over: it is to be run after all.
void forget_refusal(SpecGeneration generation, api::Status& status) {
  if (!is_refused(status) || status.observed_generation == generation) return;
  status.phase = api::Phase::kPending;
  status.reason.clear();
  status.message.clear();
  status.completion_time.reset();
  std::erase_if(status.conditions, [](const api::Condition& each) { return each.type == "Failed"; });
}

}  // namespace

bool KubeJobStore::SlimJob::operator==(const SlimJob& other) const {
  return uid == other.uid && resource_version == other.resource_version && generation == other.generation &&
         deleted == other.deleted && status == other.status;
}

KubeJobStore::KubeJobStore(ApiClient& api, const Clock& clock, Logger log, Informer::OnChange on_change,
                           KubeJobStoreOptions options)
    : api_(api),
      clock_(clock),
      store_([this](const Json& object) { return decode(object); }),
      informer_(api, {kTrainingJobs, options.ns, ""}, store_, clock, std::move(log), options.seed,
                std::move(on_change)) {
  informer_.start();
}

// ---- objects to jobs

std::shared_ptr<const KubeJobStore::Spec> KubeJobStore::read_spec(const Json& object,
                                                                  const api::Metadata& metadata) {
  const auto spec = std::make_shared<Spec>();
  spec->others = !api::is_ours(text_at(object, {"spec", "runPolicy", "managedBy"}));
  api::Parsed parsed = parse_job(object, metadata);
  if (!parsed.job) {
    spec->errors = errors_of(parsed.diagnostics);
    return spec;
  }
  spec->job = std::move(parsed.job);
  spec->pod_templates = pod_templates_of(object);
  spec->keeps_checkpoints = keeps_checkpoints(*spec->job, object);
  return spec;
}

std::optional<KubeJobStore::SlimJob> KubeJobStore::decode(const Json& object) {
  const Json& metadata = at(object, {"metadata"});
  SlimJob job;
  job.metadata = job_metadata(object);
  job.uid = text_at(metadata, {"uid"});
  if (job.metadata.name.empty() || job.uid.empty()) return std::nullopt;
  job.key = job.job_key = str_cat(job.metadata.ns, "/", job.metadata.name);
  job.resource_version = text_at(metadata, {"resourceVersion"});
  job.generation = {integer_at(metadata, {"generation"})};
  job.deleted = !text_at(metadata, {"deletionTimestamp"}).empty();
  job.status = status_from_json(at(object, {"status"}));
  api::keep_our_conditions(job.status);
  job.counts = counts_of(at(object, {"status"}));
  {
    auto specs = specs_.lock();
    const auto found = specs->find(job.uid);
    if (found != specs->end() && found->second.generation == job.generation)
      job.spec = found->second.spec.lock();
  }
  if (job.spec != nullptr) return job;
  job.spec = read_spec(object, job.metadata);
  auto specs = specs_.lock();
  if (specs->size() >= kRememberedSpecs) {
    std::erase_if(*specs, [](const auto& each) { return each.second.spec.expired(); });
    if (specs->size() >= kRememberedSpecs) specs->clear();
  }
  (*specs)[job.uid] = {job.generation, job.spec};
  return job;
}

absl::StatusOr<reconcile::StoredJob> KubeJobStore::get(const std::string& key) {
  if (!informer_.synced()) return absl::UnavailableError("the list of TrainingJobs has not come yet");
  const auto job = store_.find(key);
  if (job == nullptr) return absl::NotFoundError(str_cat("job ", key, " does not exist"));
  if (!job->spec->job) {
    if (job->spec->others) return absl::NotFoundError(str_cat("job ", key, " is managed by somebody else"));
    if (has_begun(job->status)) {
      PL_RETURN_IF_ERROR(leave_alone(*job));
      return absl::FailedPreconditionError(
          str_cat("job ", key, " is left as it is until its spec is valid: ", job->spec->errors));
    }
    PL_RETURN_IF_ERROR(refuse(*job));
    return absl::NotFoundError(str_cat("job ", key, " can't be run: ", job->spec->errors));
  }
  reconcile::StoredJob stored;
  stored.job = *job->spec->job;
  stored.job.metadata = job->metadata;
  stored.job.status = job->status;
  forget_refusal(job->generation, stored.job.status);
  stored.uid = job->uid;
  stored.version = job->resource_version;
  stored.deleted = job->deleted;
  stored.generation = job->generation;
  stored.pod_templates = job->spec->pod_templates;
  stored.keeps_checkpoints = job->spec->keeps_checkpoints;
  return stored;
}

// ---- statuses

// What the API server shows and scales by, and nobody here reads: "3/4", pods that run of those that the job
// wants, how many worker pods there are, and the step of the newest checkpoint.
KubeJobStore::Counts KubeJobStore::counts_of(const api::TrainingJob& job, const api::Status& status) {
  Counts counts;
  std::int64_t ready = 0, wanted = 0;
  for (const Role role : {Role::kChief, Role::kWorker, Role::kServer, Role::kEvaluator}) {
    if (const auto& spec = api::replica_spec(job, role)) wanted += spec->replicas;
  }
  for (const api::ReplicaStatus& each : status.replica_statuses) {
    ready += each.ready;
    if (each.role == Role::kWorker) counts.replicas = each.active;
  }
  counts.ready = str_cat(ready, "/", wanted);
  counts.checkpoint_step = api::checkpoint_step(status.last_checkpoint);
  return counts;
}

KubeJobStore::Counts KubeJobStore::counts_of(const Json& status) {
  Counts counts{.ready = text_at(status, {"ready"})};
  if (status.contains("replicas")) counts.replicas = integer_at(status, {"replicas"});
  if (status.contains("lastCheckpointStep"))
    counts.checkpoint_step = integer_at(status, {"lastCheckpointStep"});
  return counts;
}

absl::Status KubeJobStore::refuse(const SlimJob& job) {
  const bool ended = job.status.phase == api::Phase::kSucceeded || job.status.phase == api::Phase::kFailed;
  const bool edited = is_refused(job.status) && job.status.observed_generation != job.generation;
  if (job.deleted || (ended && !edited)) return absl::OkStatus();
  api::Status status = job.status;
  status.phase = api::Phase::kFailed;
  status.reason = kInvalidSpec;
  status.message = job.spec->errors;
  status.observed_generation = job.generation;
  const WallTime now = clock_.wall_now();
  if (!status.completion_time) status.completion_time = now;
  std::erase_if(status.conditions, [](const api::Condition& each) { return each.type == "Failed"; });
  for (api::Condition& condition : status.conditions) {
    if (condition.type == api::kCreated || !(condition.status || condition.unknown)) continue;
    condition.status = condition.unknown = false;
    condition.last_transition = now;
    condition.reason = kInvalidSpec;
    condition.message = status.message;
  }
  status.conditions.push_back({"Failed", true, status.reason, status.message, now, job.generation});
  return write(job, status, job.resource_version);
}

absl::Status KubeJobStore::leave_alone(const SlimJob& job) {
  api::Status status = job.status;
  auto said = std::ranges::find(status.conditions, kInvalidSpec, &api::Condition::type);
  if (said == status.conditions.end()) said = status.conditions.insert(said, {.type = kInvalidSpec});
  if (!said->status) {
    said->status = true;
    said->unknown = false;
    said->reason = "Refused";
    said->last_transition = clock_.wall_now();
  }
  said->message = job.spec->errors;
  said->observed_generation = job.generation;
  return write(job, status, job.resource_version);
}

absl::Status KubeJobStore::write_status(const std::string& key, const api::Status& status,
                                        const std::string& version) {
  const auto job = store_.find(key);
  if (job == nullptr) return absl::NotFoundError(str_cat("job ", key, " does not exist"));
  return write(*job, status, version);
}

absl::Status KubeJobStore::write(const SlimJob& job, const api::Status& status, const std::string& version) {
  Json json = status_to_json(status);
  if (json == status_to_json(job.status)) return absl::OkStatus();
  // A job that is left alone is counted as it was: nobody can say what its spec wants.
  const Counts counts = job.spec->job ? counts_of(*job.spec->job, status) : job.counts;
  if (!counts.ready.empty()) json["ready"] = counts.ready;
  if (counts.replicas) json["replicas"] = *counts.replicas;
  if (counts.checkpoint_step) json["lastCheckpointStep"] = *counts.checkpoint_step;
  // A server that drops a field is not told of it for ever: what it has is what we wrote.
  const std::size_t hash = std::hash<std::string>()(dump(json));
  {
    auto written = written_.lock();
    const auto found = written->find(job.uid);
    if (found != written->end() && found->second == Written{job.resource_version, hash})
      return absl::OkStatus();
  }
  Json metadata = {{"name", job.metadata.name}, {"namespace", job.metadata.ns}, {"uid", job.uid}};
  if (!version.empty()) metadata["resourceVersion"] = version;
  const Json object = {{"apiVersion", kTrainingJobs.api_version},
                       {"kind", kTrainingJobs.kind},
                       {"metadata", std::move(metadata)},
                       {"status", json}};
  const absl::StatusOr<Json> applied =
      api_.apply(kTrainingJobs, job.metadata.ns, job.metadata.name, "status", object);
  if (absl::IsAborted(applied.status())) {
    return absl::AbortedError(str_cat("job ", job.key, " has changed since it was read"));
  }
  PL_RETURN_IF_ERROR(applied.status());
  store_.offer(*applied);
  auto written = written_.lock();
  if (written->size() >= kRememberedSpecs) written->clear();
  (*written)[job.uid] = {text_at(*applied, {"metadata", "resourceVersion"}), hash};
  return absl::OkStatus();
}

absl::Status KubeJobStore::remove(const std::string& key, const std::string& uid) {
  const std::size_t slash = key.find('/');
  const absl::Status status =
      api_.remove(kTrainingJobs, key.substr(0, slash), key.substr(slash + 1), {.uid = uid}).status();
  if (!absl::IsAborted(status)) return status;
  return absl::NotFoundError(str_cat("job ", key, " with uid ", uid, " does not exist"));
}

}  // namespace paceline::kube
