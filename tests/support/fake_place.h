#pragma once

// A place with one job, "default/digits", that runs: what its dashboard asks of it is noted, and nothing is
// done.

#include <atomic>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/guarded.h"
#include "base/text.h"
#include "controller/dashboard/place.h"

namespace paceline::dashboard {

inline kube::Json running_job() {
  return kube::Json::parse(R"({"metadata": {"namespace": "default", "name": "digits", "uid": "digits"},
    "spec": {"replicaSpecs": {"worker": {"replicas": 3, "minReplicas": 2, "maxReplicas": 4}},
             "training": {"model": {"type": "mlp", "hidden": [8], "classes": 10},
                          "data": {"format": "csv", "train": {"inputs": "digits.csv"}},
                          "optimizer": {"type": "SGD", "learningRate": 0.1}, "globalBatchSize": 64, "epochs": 1}},
    "status": {"phase": "Running", "members": [{"role": "worker", "index": 0, "host": "here"}]}})");
}

// The calls that a place got.
struct Done {
  std::vector<kube::Json> patches;
  std::vector<std::string> removed, records;  // removed: uids
  int reads = 0;                              // of series
};

// An API server that does not answer, while it `hangs`, those who ask for events.
struct Hang {
  bool hangs = false;
  int waiting = 0;
};

class FakeSource final : public jobs::JobSource {
 public:
  FakeSource(Guarded<Done>& done, Guarded<Hang>& hang) : done_(done), hang_(hang) {}
  absl::StatusOr<Listed> list_jobs(const std::string&) override { return Listed{}; }
  absl::StatusOr<kube::Json> job(const std::string&, const std::string&) override { return running_job(); }
  absl::StatusOr<std::vector<kube::SlimPod>> pods(const std::string&, const std::string&) override {
    return std::vector<kube::SlimPod>();
  }
  absl::StatusOr<std::vector<kube::SlimPod>> logged_pods(const std::string&, const std::string&) override {
    kube::SlimPod pod;
    pod.key = "default/digits-worker-0-0";
    return std::vector{pod};
  }
  absl::Status read_log(const kube::SlimPod&, const jobs::LogRequest& request, const jobs::LogSink& sink,
                        std::stop_token) override {
    for (int i = 0; i < request.tail.value_or(0); ++i) sink.bytes(str_cat("line ", i, "\n"));
    return absl::OkStatus();
  }
  absl::StatusOr<Events> events(const std::string&, const std::string&) override {
    ++hang_.lock()->waiting;
    --hang_.lock_when([](const Hang& now) { return !now.hangs; }, std::chrono::minutes(2))->waiting;
    return Events{{{.reason = "ViewChanged", .message = "words"}}, ""};
  }
  absl::StatusOr<kube::Json> patch(const std::string&, const std::string&, const kube::Json& patch,
                                   const std::string&) override {
    done_.lock()->patches.push_back(patch);
    return running_job();
  }
  absl::StatusOr<kube::Json> remove(const std::string&, const std::string&, const std::string& uid,
                                    const std::string&) override {
    done_.lock()->removed.push_back(uid);
    return running_job();
  }

 private:
  Guarded<Done>& done_;
  Guarded<Hang>& hang_;
};

class FakePlace final : public Place {
 public:
  JobHistory* past = nullptr;
  JobHistory* history() override { return past; }
  kube::Json about() const override { return {{"place", "Local"}}; }
  absl::StatusOr<std::unique_ptr<jobs::JobSource>> source(const Viewer&) override {
    return std::make_unique<FakeSource>(done, hang);
  }
  absl::StatusOr<std::string> yaml(const kube::Json&) override { return "kind: TrainingJob\n"; }
  absl::Status use_series(const kube::Json&, const std::function<void(const JobSeries&)>& use) override {
    ++done.lock()->reads;
    JobSeries series;
    for (Step step = 0; step < 10; ++step) {
      series.add(StepPoint{.step = step, .loss = 1, .seconds = static_cast<double>(step)});
      series.add(MemberPoint{.member = "worker-0", .step = step, .ms = {0, 1, 2}});
    }
    use(series);
    return absl::OkStatus();
  }
  absl::Status record(const kube::Json&, bool, std::string_view reason, std::string_view message) override {
    if (reads_only) return absl::PermissionDeniedError("open events.jsonl: Read-only file system");
    done.lock()->records.push_back(str_cat(reason, ": ", message));
    return absl::OkStatus();
  }
  bool removes_slowly() const override { return slow; }
  Guarded<Done> done;
  Guarded<Hang> hang;
  std::atomic<bool> reads_only{false}, slow{false};
};

}  // namespace paceline::dashboard
