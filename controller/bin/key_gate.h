#pragma once

// Keys of jobs that changed, for a queue from which only a leader takes: kept back before this replica leads,
// when they would pile up, those of deleted jobs too. Thread-safe.

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace paceline::controller {

class KeyGate {
 public:
  using Add = std::function<void(const std::string& key)>;
  explicit KeyGate(Add add) : add_(std::move(add)) {}

  // The change must be in what open() lists already: then it is added by one of the two.
  void publish(const std::string& key) const {
    if (open_.load()) add_(key);
  }
  // From now on keys pass; those that were kept back are among all.
  void open(const std::function<std::vector<std::string>()>& list_all) {
    open_.store(true);
    for (const std::string& key : list_all()) add_(key);
  }

 private:
  const Add add_;
  std::atomic<bool> open_{false};
};

}  // namespace paceline::controller
