#include "controller/dashboard/past_job.h"

#include <utility>

#include "base/text.h"
#include "controller/cluster/kube/resources.h"
#include "controller/cluster/kube/times.h"
#include "controller/dashboard/actions.h"
#include "controller/dashboard/job_row.h"

namespace paceline::dashboard {

using kube::Json;

namespace {

// The history's texts are ours: one that is no object, of a file that others changed, is an empty one.
Json object_in(const std::string& text) {
  auto json = kube::parse_json(text);
  return json.ok() && json->is_object() ? *std::move(json) : Json::object();
}

Json& object_at(Json& parent, const char* field) {
  Json& child = parent[field];
  if (!child.is_object()) child = Json::object();
  return child;
}

std::string deleted_text(const history::Record& record) {
  return kube::format_seconds(record.deleted.value_or(record.changed));
}

}  // namespace

history::Record record_of(const Json& object, std::optional<WallTime> deleted, WallTime now) {
  return {.uid = kube::text_at(object, {"metadata", "uid"}),
          .ns = kube::text_at(object, {"metadata", "namespace"}),
          .name = kube::text_at(object, {"metadata", "name"}),
          .created = kube::parse_time(kube::text_at(object, {"metadata", "creationTimestamp"})).value_or(now),
          .changed = now,
          .over = deleted.has_value() || has_ended(object),
          .deleted = deleted,
          .row = kube::dump(job_row(object, deleted.value_or(now))),
          .object = kube::dump(object)};
}

Json past_row(const history::Record& record) {
  Json row = object_in(record.row);
  row["deleted"] = deleted_text(record);
  row.erase("etaSeconds");
  const std::string& phase = kube::text_at(row, {"phase"});
  if (phase == "Succeeded" || phase == "Failed" || phase == "Stopped") return row;
  row["phase"] = "Stopped";
  row["reason"] = "Deleted";
  row["finished"] = row["deleted"];
  return row;
}

Json past_object(const history::Record& record) {
  Json object = object_in(record.object);
  object_at(object_at(object, "metadata"), "annotations")[kube::kDeletedAnnotation] = deleted_text(record);
  return object;
}

std::string past_job_text() {
  return "it is deleted, and the history alone has it";
}

std::string past_job_json(const history::Record& record) {
  const Json object = past_object(record);
  const auto why = [](Action, const Json&) { return past_job_text(); };
  return kube::dump({{"version", "0"},
                     {"row", past_row(record)},
                     {"actions", actions_json(object, Rights(), why)},
                     {"hints", Json::array()},
                     {"object", object}});
}

}  // namespace paceline::dashboard
