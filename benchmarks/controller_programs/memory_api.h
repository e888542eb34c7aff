#pragma once

// An API server in memory for one namespace full of TrainingJobs, behind the Transport interface: small
// enough that what is measured is the controller. A pod is 16 bytes; its JSON, as a kubelet would write it,
// is made whenever it is asked for. Created pods are Running at once: the second watch event of each says so.
//
// It knows what the controller asks for while jobs start and run: lists in pages, watches, the creation of
// pods, services, secrets and events, and the status sub-resource. Anything else is a 404.
//
// Thread-safe.

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "controller/cluster/kube/json.h"
#include "controller/cluster/kube/transport.h"

namespace paceline::benchmarks {

class MemoryApi final : public kube::Transport {
 public:
  // `jobs` TrainingJobs of `workers` workers each, named job-0, job-1, ... in namespace "bench".
  MemoryApi(int jobs, int workers);

  struct Counts {
    std::uint64_t requests = 0, pods = 0, running = 0;
    std::uint64_t jobs_running = 0;  // of which a status with that phase was written
  };
  Counts counts() const;

  absl::StatusOr<kube::Response> call(const kube::Request& request) override;
  absl::StatusOr<kube::Response> stream(const kube::Request& request,
                                        const std::function<bool(std::string_view)>& on_bytes,
                                        std::stop_token stop) override;

 private:
  enum Kind : std::uint8_t { kJobs, kPods, kServices, kKinds };
  struct Pod {
    std::uint64_t version = 0;  // zero: not there
    bool running = false;
  };
  struct Job {
    std::uint64_t version = 0;
    std::string status;  // JSON
    std::uint64_t service_version = 0;
  };
  struct Change {
    std::uint64_t version;
    std::uint32_t object;
    bool added;
  };

  // A job's number and, of a pod, the worker's, from an object's name; -1 where there is none.
  static int job_of(std::string_view name);
  static int worker_of(std::string_view name);
  kube::Response list(Kind kind, std::string_view query);
  kube::Response create(Kind kind, const kube::Request& request);
  kube::Response write_status(std::string_view name, const std::string& body);
  std::string object(Kind kind, std::uint32_t number) const;
  std::string pod_json(std::uint32_t number) const;
  std::uint64_t version(Kind kind, std::size_t number) const;
  std::size_t size(Kind kind) const;
  void changed(Kind kind, std::uint32_t number, bool added);

  const int workers_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable_any wake_;
  std::vector<Job> jobs_;
  std::vector<Pod> pods_;
  std::array<std::deque<Change>, kKinds> changes_;
  std::uint64_t version_ = 1;
  Counts counts_;
};

}  // namespace paceline::benchmarks
