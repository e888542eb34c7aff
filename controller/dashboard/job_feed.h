#pragma once

// The jobs of an API server for a board: what an Informer brings goes to the board at once, and into the
// samples of its job's status. One thread puts, any may ask for series. Bounded: samples of kMostSampled jobs
// (the one whose status changed longest ago goes).

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/guarded.h"
#include "controller/cluster/kube/object_store.h"
#include "controller/dashboard/board.h"
#include "controller/dashboard/status_samples.h"

namespace paceline::dashboard {

class JobFeed final : public kube::ObjectSink {
 public:
  static constexpr std::size_t kMostSampled = 512;

  // Both outlive it.
  JobFeed(Board& board, const Clock& clock) : board_(board), clock_(clock) {}

  void begin(std::uint64_t, std::string_view) override {}
  void put(const kube::Json& object, std::uint64_t round, Keys& changed) override;
  void remove(const kube::Json& object, Keys& changed) override;
  void sweep(std::uint64_t round, std::string_view resource_version, Keys& changed) override;

  // Empty where nothing was sampled.
  JobSeries series(const kube::Json& object) const;

 private:
  struct Known {
    std::string uid;
    std::uint64_t round = 0;
  };
  struct Sampled {
    TimePoint changed{};
    StatusSamples samples;
  };
  void sample(const std::string& uid, const kube::Json& object);
  void forget(const std::string& key, Keys& changed);

  Board& board_;
  const Clock& clock_;
  std::map<std::string, Known> known_;                       // by key; the putting thread's
  mutable Guarded<std::map<std::string, Sampled>> sampled_;  // by uid
};

}  // namespace paceline::dashboard
