#pragma once

// The runs of this machine as a dashboard's place: their series come from metrics.jsonl, of at most
// kMostTails runs at once (the one that was not asked for the longest is forgotten). Thread-safe.

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/guarded.h"
#include "cli/dashboard/metrics_tail.h"
#include "cli/state/run_store.h"
#include "controller/dashboard/place.h"

namespace paceline::cli {

class RunPlace final : public dashboard::Place {
 public:
  static constexpr std::size_t kMostTails = 16;
  static constexpr std::size_t kMostBytes = 64 << 20;  // that one question reads; the next one reads on

  RunPlace(RunStore store, const Clock& clock);

  kube::Json about() const override { return {{"place", "Local"}}; }
  const std::string& user() const { return user_; }
  std::unique_ptr<jobs::JobSource> source();
  absl::StatusOr<std::unique_ptr<jobs::JobSource>> source(const dashboard::Viewer&) override {
    return source();
  }
  bool removes_slowly() const override { return true; }
  absl::StatusOr<std::string> yaml(const kube::Json& object) override;
  absl::Status use_series(const kube::Json& object,
                          const std::function<void(const dashboard::JobSeries&)>& use) override {
    return use_series(object, kMostBytes, use);
  }
  // The same, of which at most about so many bytes are read now.
  absl::Status use_series(const kube::Json& object, std::size_t most_bytes,
                          const std::function<void(const dashboard::JobSeries&)>& use);
  absl::Status record(const kube::Json& object, bool warning, std::string_view reason,
                      std::string_view message) override;

 private:
  struct Tail {
    const std::string folder, uid;
    std::mutex busy;  // while it is read
    MetricsTail metrics;
    Tail(const std::string& run, std::string uid)
        : folder(run), uid(std::move(uid)), metrics(run + "/metrics.jsonl") {}
  };

  std::string folder_of(const kube::Json& object) const;
  std::shared_ptr<Tail> tail_of(const kube::Json& object);

  const RunStore store_;
  const Clock& clock_;
  const std::string user_;
  Guarded<std::list<std::shared_ptr<Tail>>> tails_;  // the one that was asked for last is the first
};

}  // namespace paceline::cli
