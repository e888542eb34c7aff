#pragma once

// Processes that the kernel has killed for want of memory, where ours run: a process that dies by SIGKILL
// does not say who sent it. Not thread-safe.

#include <cstdint>
#include <string>
#include <utility>

namespace paceline::cluster {

// The file that counts them: of our control group, where it has one, else of the whole machine.
// `cgroups`: the content of /proc/self/cgroup.
std::string oom_counter(const std::string& cgroups);

class OomKills {
 public:
  explicit OomKills(std::string counter) : counter_(std::move(counter)) { forget(); }

  // The kills that were counted so far explain no end from now on.
  void forget() { explained_ = count(); }
  // Whether one was counted that explains no other end yet; it explains this one.
  bool take();

 private:
  std::int64_t count() const;

  std::string counter_;
  std::int64_t explained_ = 0;
};

}  // namespace paceline::cluster
