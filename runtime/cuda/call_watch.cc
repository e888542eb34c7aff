#include "runtime/cuda/call_watch.h"

#include <utility>

namespace paceline::cuda {

const char* CallPlaces::look(int allowed) {
  const char* stuck = nullptr;
  for (std::size_t i = 0; i < kPlaces; ++i) {
    const char* const call = places_[i].call.load(std::memory_order_acquire);
    const std::uint64_t ended = places_[i].ended.load(std::memory_order_relaxed);
    Seen& seen = seen_[i];
    if (call == nullptr || ended != seen.ended) seen = {ended, 0};
    if (call == nullptr || ++seen.looks <= allowed) continue;
    seen.looks = 0;
    stuck = call;
  }
  return stuck;
}

CallWatch::CallWatch(OnStuck on_stuck, const CallLimits& limits)
    : on_stuck_(std::move(on_stuck)), limits_(limits), thread_([this] { watch(); }) {}

CallWatch::~CallWatch() {
  *stopped_.lock() = true;
}

void CallWatch::watch() {
  while (!*stopped_.lock_when([](bool stopped) { return stopped; }, limits_.every)) {
    if (const char* const stuck = places_.look(limits_.looks); stuck != nullptr) on_stuck_(stuck);
  }
}

}  // namespace paceline::cuda
