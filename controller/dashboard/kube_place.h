#pragma once

// The jobs of an API server as a dashboard's place. Viewers without a token of their own have the rights of
// the place's client; those with one, of `transport_of`, their own. Thread-safe.

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/log.h"
#include "controller/cluster/kube/api_client.h"
#include "controller/dashboard/job_history.h"
#include "controller/dashboard/job_samples.h"
#include "controller/dashboard/place.h"

namespace paceline::dashboard {

struct KubePlaceOptions {
  std::string cluster;   // where it is, for people; empty: they know
  std::string ns;        // whose jobs; empty: all namespaces'
  std::string instance;  // of this process, in events
  // The way to the API server with a viewer's token. Null: viewers have no tokens.
  std::function<absl::StatusOr<std::unique_ptr<kube::Transport>>(const std::string& token)> transport_of;
  std::stop_token stop = {};  // ends their calls
  JobHistory* history = nullptr;
};

class KubePlace final : public Place {
 public:
  // The references outlive it.
  KubePlace(kube::ApiClient& api, const JobSamples& samples, const Clock& clock, Logger log,
            KubePlaceOptions options)
      : api_(api), samples_(samples), clock_(clock), log_(std::move(log)), options_(std::move(options)) {}

  kube::Json about() const override;
  absl::StatusOr<std::unique_ptr<jobs::JobSource>> source(const Viewer& viewer) override;
  absl::StatusOr<std::string> yaml(const kube::Json& object) override;
  absl::Status use_series(const kube::Json& object,
                          const std::function<void(const JobSeries&)>& use) override;
  JobHistory* history() override { return options_.history; }
  // By the place's own rights; what can't be written is logged, and is no error.
  absl::Status record(const kube::Json& object, bool warning, std::string_view reason,
                      std::string_view message) override;

 private:
  kube::ApiClient& api_;
  const JobSamples& samples_;
  const Clock& clock_;
  const Logger log_;
  const KubePlaceOptions options_;
};

}  // namespace paceline::dashboard
