#include "controller/queue/back_off.h"

#include <algorithm>

namespace paceline::queue {

Duration BackOff::next(const std::string& key) {
  const int failures = failures_[key]++;
  Duration wait = limits_.base;
  for (int i = 0; i < failures && wait < limits_.longest; ++i) wait *= 2;
  return std::min(wait, limits_.longest);
}

int BackOff::failures(const std::string& key) const {
  const auto found = failures_.find(key);
  return found == failures_.end() ? 0 : found->second;
}

}  // namespace paceline::queue
