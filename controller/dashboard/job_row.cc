#include "controller/dashboard/job_row.h"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "base/text.h"
#include "controller/api/status.h"
#include "controller/cluster/kube/cached_files.h"
#include "controller/cluster/kube/job_object.h"
#include "controller/cluster/kube/status_json.h"
#include "controller/cluster/kube/times.h"
#include "controller/plan/elastic.h"
#include "controller/plan/trouble.h"

namespace paceline::dashboard {

namespace {

using kube::Json;

const Json& run_of(const Json& object) {
  return kube::at(object, {"status", "run"});
}

// A run tells its own, as `paceline describe` has it: the mean speed where it has ended.
const Json& progress_of(const Json& object) {
  const Json& run = run_of(object);
  return run.contains("step") ? run : kube::at(object, {"status", "progress"});
}

void set_text(Json& row, const char* key, const std::string& text) {
  if (!text.empty()) row[key] = text;
}

void set_number(Json& row, const char* key, const Json& number) {
  if (number.is_number()) row[key] = number;
}

// One that is 0 where nothing is known.
void set_positive(Json& row, const char* key, const Json& number) {
  if (number.is_number() && number.get<double>() > 0) row[key] = number;
}

std::int64_t wanted_members(const Json& object) {
  std::int64_t count = 0;
  const Json& replicas = kube::at(object, {"spec", "replicaSpecs"});
  if (!replicas.is_object()) return 0;
  for (const auto& [role, spec] : replicas.items()) {
    const Json& wanted = kube::at(spec, {"replicas"});
    count += wanted.is_number_integer() ? wanted.get<std::int64_t>() : 1;
    count += kube::integer_at(spec, {"standby"});
  }
  return count;
}

std::int64_t ready_members(const Json& object) {
  std::int64_t count = 0;
  for (const Json& role : kube::list_at(object, {"status", "replicaStatuses"}))
    count += kube::integer_at(role, {"ready"});
  return count;
}

std::string finished_of(const Json& object) {
  const std::string& run = kube::text_at(run_of(object), {"finished"});
  return run.empty() ? kube::text_at(object, {"status", "completionTime"}) : run;
}

std::optional<double> elapsed_of(const Json& object, WallTime now) {
  if (const auto run = kube::number_at(run_of(object), {"elapsedSeconds"})) return run;
  const auto begun = kube::parse_time(kube::text_at(object, {"status", "startTime"}));
  if (!begun) return std::nullopt;
  const WallTime end = kube::parse_time(finished_of(object)).value_or(now);
  return std::max(0.0, std::chrono::duration<double>(end - *begun).count());
}

void add_progress(const Json& object, Json& row) {
  const Json& progress = progress_of(object);
  const std::int64_t step = kube::integer_at(progress, {"step"});
  const std::int64_t steps = kube::integer_at(progress, {"totalSteps"});
  row["step"] = step;
  if (steps > 0) {
    row["steps"] = steps;
    row["progress"] = std::min(1.0, static_cast<double>(step) / static_cast<double>(steps));
  }
  set_positive(row, "epoch", kube::at(progress, {"epoch"}));
  set_positive(row, "epochs", kube::at(object, {"spec", "training", "epochs"}));
  set_number(row, "etaSeconds", kube::at(progress, {"etaSeconds"}));
  set_number(row, "loss", kube::at(progress, {"loss"}));
  set_number(row, "accuracy", kube::at(progress, {"testAccuracy"}));
  set_number(row, "auc", kube::at(progress, {"testAuc"}));
  set_positive(row, "goodput", kube::at(progress, {"goodput"}));
  const auto samples = kube::number_at(progress, {"samplesPerSecond"});
  const auto per_step = samples_per_step(object);
  if (samples && *samples > 0) row["samplesPerSecond"] = *samples;
  if (samples && *samples > 0 && per_step) row["stepsPerSecond"] = *samples / *per_step;
}

// The part of its status that tells of pods that do not start: a row is made often, of many members.
api::Status start_of(const Json& object) {
  Json told = Json::object();
  for (const char* key : {"phase", "reason", "message", "conditions"})
    told[key] = kube::at(object, {"status", key});
  return kube::status_from_json(told);
}

// The words about one that goes on and is held up: nobody writes what is told of it, members lack, a pod does
// not start, saves fail.
std::string warning_of(const Json& object) {
  if (has_ended(object) || kube::flag_at(object, {"spec", "runPolicy", "suspend"})) return "";
  const std::string& reason = kube::text_at(object, {"status", "reason"});
  if (reason == api::kOwnerStopped || reason == api::kStatusOld || reason == plan::kTooFewMembers)
    return kube::text_at(object, {"status", "message"});
  const api::Status start = start_of(object);
  if (const api::Condition* const trouble = plan::pod_trouble(start); trouble != nullptr)
    return str_cat(trouble->reason, ": ", trouble->message);
  for (const Json& each : kube::list_at(object, {"status", "conditions"})) {
    if (kube::text_at(each, {"type"}) == api::kCheckpointFailed && kube::text_at(each, {"status"}) == "True")
      return str_cat("saves fail: ", kube::text_at(each, {"message"}));
  }
  return "";
}

}  // namespace

std::string phase_of(const Json& object) {
  const std::string& run = kube::text_at(run_of(object), {"phase"});
  const std::string& job = kube::text_at(object, {"status", "phase"});
  // A run's owner tells its end, and its folder does where there is no owner.
  if (run == "Stopped" || run == "Unknown" || job.empty()) return run.empty() ? "Pending" : run;
  if (job == "Failed" && kube::text_at(object, {"status", "reason"}) == "Stopped") return "Stopped";
  return job;
}

bool has_ended(const Json& object) {
  const std::string phase = phase_of(object);
  return phase == "Succeeded" || phase == "Failed" || phase == "Stopped" || phase == "Unknown";
}

bool keeps_checkpoints(const Json& object) {
  if (run_of(object).is_object()) return true;
  const api::Parsed parsed = kube::parse_job(object, kube::job_metadata(object));
  return !parsed.job || kube::keeps_checkpoints(*parsed.job, object);
}

std::vector<std::string> pod_hints(const Json& object) {
  const api::Status start = start_of(object);
  const api::Condition* const trouble = plan::pod_trouble(start);
  const std::string_view advice = trouble == nullptr ? "" : plan::pod_advice(trouble->reason);
  if (advice.empty()) return {};
  return {str_cat(trouble->reason, ": ", advice)};
}

std::string member_name(const Json& of) {
  return str_cat(kube::text_at(of, {"role"}), "-", kube::integer_at(of, {"index"}));
}

std::optional<double> samples_per_step(const Json& object) {
  const double samples = kube::number_at(run_of(object), {"samples"}).value_or(0);
  const double steps = kube::number_at(progress_of(object), {"step"}).value_or(0);
  if (samples > 0 && steps > 0) return samples / steps;
  const auto batch = kube::number_at(object, {"spec", "training", "globalBatchSize"});
  const bool servers = kube::text_at(object, {"spec", "strategy", "type"}) == "ParameterServer";
  if (servers || !batch || *batch <= 0) return std::nullopt;
  return batch;
}

Json job_row(const Json& object, WallTime now) {
  Json row = {{"namespace", kube::text_at(object, {"metadata", "namespace"})},
              {"name", kube::text_at(object, {"metadata", "name"})},
              {"uid", kube::text_at(object, {"metadata", "uid"})},
              {"phase", phase_of(object)},
              {"members", wanted_members(object)},
              {"ready", ready_members(object)},
              {"restarts", kube::integer_at(object, {"status", "restarts", "total"})},
              {"suspended", kube::flag_at(object, {"spec", "runPolicy", "suspend"})}};
  set_text(row, "reason", kube::text_at(object, {"status", "reason"}));
  set_text(row, "created", kube::text_at(object, {"metadata", "creationTimestamp"}));
  set_text(row, "finished", finished_of(object));
  if (const auto elapsed = elapsed_of(object, now)) row["elapsedSeconds"] = *elapsed;
  add_progress(object, row);
  const Json::array_t& stragglers = kube::list_at(object, {"status", "stragglers"});
  row["stragglers"] = stragglers.size();
  if (!stragglers.empty()) set_text(row, "stragglerText", kube::text_at(stragglers.front(), {"message"}));
  set_text(row, "warning", warning_of(object));
  set_text(row, "model", kube::text_at(object, {"spec", "training", "model", "type"}));
  const std::string& strategy = kube::text_at(object, {"spec", "strategy", "type"});
  const bool trains = kube::at(object, {"spec", "training"}).is_object();
  set_text(row, "strategy", strategy.empty() && trains ? "AllReduce" : strategy);
  set_text(row, "device", kube::text_at(run_of(object), {"device"}));
  return row;
}

}  // namespace paceline::dashboard
