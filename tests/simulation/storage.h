#pragma once

// The model of where a job's checkpoints are: on a volume that all its pods see, or in each pod, where they
// go with it. One that is being written when its writer ends is not there.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/ids.h"

namespace paceline::simulation {

class Storage {
 public:
  struct Saved {
    Step step = 0;
    std::uint64_t weights = 0;
  };
  explicit Storage(bool is_shared) : shared_(is_shared) {}
  bool is_shared() const { return shared_; }
  void save(const std::string& job_uid, const std::string& pod_uid, Saved saved) {
    folders_[folder(job_uid, pod_uid)][saved.step] = saved;
  }
  std::optional<Saved> newest(const std::string& job_uid, const std::string& pod_uid) const {
    const auto found = folders_.find(folder(job_uid, pod_uid));
    if (found == folders_.end()) return std::nullopt;
    return found->second.rbegin()->second;
  }

 private:
  std::string folder(const std::string& job_uid, const std::string& pod_uid) const {
    return shared_ ? job_uid : pod_uid;
  }
  const bool shared_;
  std::map<std::string, std::map<Step, Saved>> folders_;
};

}  // namespace paceline::simulation
