#pragma once

// Which events are written: the same one again within kSeriesTime counts up in the one that is there, written
// at most once per kSeriesWrite; new ones of a job are bounded by a token bucket. Pure; a value; one thread
// at a time; `now` must not go back.
//
// Bound: kMaxSeries remembered events.

#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "base/clock.h"
#include "controller/cluster/cluster.h"

namespace paceline::kube {

inline constexpr Duration kSeriesTime = std::chrono::minutes(10);
inline constexpr Duration kSeriesWrite = std::chrono::seconds(10);
inline constexpr std::size_t kMaxSeries = 20'000;
inline constexpr int kEventBurst = 25;                             // of one job at once,
inline constexpr Duration kEventEvery = std::chrono::seconds(10);  // and then one in this time

class EventSeries {
 public:
  struct Create {
    std::string name;
  };
  struct Count {
    std::string name;
    int count = 0;  // at least 2
  };
  struct Nothing {};  // it is counted, and written with the next
  struct Drop {};     // too many of this job
  using Action = std::variant<Create, Count, Nothing, Drop>;

  // `salt` makes the name differ from those of other controllers: the wall clock's nanoseconds, say.
  Action take(const cluster::Event& event, TimePoint now, std::uint64_t salt);
  // It could not be written, or is gone: the next of its kind is created.
  void forget(const cluster::Event& event);

 private:
  struct Series {
    std::string name;
    int count = 1;
    TimePoint seen{}, written{};
  };
  struct Bucket {
    double tokens = kEventBurst;
    TimePoint filled{};
  };
  bool take_token(const std::string& job, TimePoint now);
  void prune(TimePoint now);

  std::map<std::string, Series> series_;
  std::map<std::string, Bucket> buckets_;  // by job and its uid; full ones are forgotten
};

}  // namespace paceline::kube
