#include "controller/dashboard/kube_place.h"

#include <cstring>
#include <utility>

#include "base/hex.h"
#include "base/random.h"
#include "base/status.h"
#include "base/text.h"
#include "controller/cluster/kube/resources.h"
#include "controller/cluster/kube/times.h"
#include "controller/dashboard/job_table.h"
#include "controller/jobs/kube_jobs.h"
#include "controller/jobs/yaml.h"

namespace paceline::dashboard {

namespace {

using kube::Json;

constexpr std::size_t kMaxNoteBytes = 1000;  // the API server takes 1024
constexpr std::size_t kSuffixBytes = 8;      // of an event's name

std::string words_of(const KubePlaceOptions& options) {
  return options.cluster.empty() ? "the API server" : options.cluster;
}

// A client that goes by somebody's token, and what it asks by.
struct OwnClient {
  OwnClient(std::unique_ptr<kube::Transport> way, const Clock& clock, std::stop_token stop)
      : transport(std::move(way)), api(*transport, clock, /*seed=*/1, std::move(stop)) {}
  const std::unique_ptr<kube::Transport> transport;
  kube::ApiClient api;
};
class OwnJobs final : private OwnClient, public jobs::KubeJobs {
 public:
  OwnJobs(std::unique_ptr<kube::Transport> way, const Clock& clock, const KubePlaceOptions& options)
      : OwnClient(std::move(way), clock, options.stop),
        KubeJobs(OwnClient::api, words_of(options), options.stop) {}
};

}  // namespace

Json KubePlace::about() const {
  Json about = {{"place", "Cluster"}};
  if (!options_.cluster.empty()) about["cluster"] = options_.cluster;
  if (options_.history != nullptr) about["history"] = options_.history->about();
  if (!options_.ns.empty()) about["namespaces"] = Json::array({options_.ns});
  return about;
}

absl::StatusOr<std::unique_ptr<jobs::JobSource>> KubePlace::source(const Viewer& viewer) {
  if (viewer.token.empty())
    return std::make_unique<jobs::KubeJobs>(api_, words_of(options_), std::stop_token());
  PL_ASSIGN_OR_RETURN(auto transport, options_.transport_of(viewer.token));
  return std::make_unique<OwnJobs>(std::move(transport), clock_, options_);
}

absl::StatusOr<std::string> KubePlace::yaml(const Json& object) {
  Json metadata = Json::object();
  for (const char* key : {"name", "namespace", "labels", "annotations"}) {
    if (const Json& value = kube::at(object, {"metadata", key}); !value.is_null()) metadata[key] = value;
  }
  if (metadata.contains("annotations")) metadata["annotations"].erase(kube::kDeletedAnnotation);
  return jobs::yaml_of(kube::dump({{"apiVersion", kube::kTrainingJobs.api_version},
                                   {"kind", kube::kTrainingJobs.kind},
                                   {"metadata", std::move(metadata)},
                                   {"spec", kube::at(object, {"spec"})}}));
}

absl::Status KubePlace::use_series(const Json& object, const std::function<void(const JobSeries&)>& use) {
  const std::string& uid = kube::text_at(object, {"metadata", "uid"});
  JobSeries series;
  if (options_.history != nullptr) {
    series = options_.history->series(uid);
  } else {
    samples_.of(uid).add_to(series);
  }
  use(series);
  return absl::OkStatus();
}

absl::Status KubePlace::record(const Json& object, bool warning, std::string_view reason,
                               std::string_view message) {
  const std::string& ns = kube::text_at(object, {"metadata", "namespace"});
  const std::string& name = kube::text_at(object, {"metadata", "name"});
  const Json event = {
      {"apiVersion", kube::kEvents.api_version},
      {"kind", kube::kEvents.kind},
      {"metadata", {{"name", str_cat(name, ".", hex(random_bytes(kSuffixBytes)))}, {"namespace", ns}}},
      {"eventTime", kube::format_micro_time(clock_.wall_now())},
      {"reportingController", "paceline.dev/dashboard"},
      {"reportingInstance", options_.instance},
      {"action", "UserAction"},
      {"type", warning ? "Warning" : "Normal"},
      {"reason", reason},
      {"note", kube::sanitize_line(message, kMaxNoteBytes)},
      {"regarding",
       {{"apiVersion", kube::kTrainingJobs.api_version},
        {"kind", kube::kTrainingJobs.kind},
        {"namespace", ns},
        {"name", name},
        {"uid", kube::text_at(object, {"metadata", "uid"})}}}};
  const absl::Status status = api_.create(kube::kEvents, ns, event).status();
  if (!status.ok())
    log_.warning(str_cat("an event can't be written: ", status.message()),
                 {{"job", key_of(object)}, {"reason", std::string(reason)}});
  return absl::OkStatus();
}

}  // namespace paceline::dashboard
