#pragma once

// Keys of jobs that changed, from any threads to one receiver: each key at most once until it is handed over,
// in a thread of its own, without locks. Thread-safe.

#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "controller/cluster/cluster.h"

namespace paceline::kube {

class ChangeFeed {
 public:
  // Its destruction ends the thread after the call under way.
  ChangeFeed() : thread_([this](std::stop_token stop) { run(std::move(stop)); }) {}

  void publish(const std::string& key);
  // As Cluster::watch(): when it returns, the old receiver runs no more. What is told while there is none is
  // forgotten: whoever begins to receive looks at all anyway.
  void set_receiver(cluster::Cluster::OnChange receiver);

 private:
  void run(std::stop_token stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::set<std::string> keys_;  // guarded by mutex_, as the next two
  cluster::Cluster::OnChange receiver_;
  bool calling_ = false;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace paceline::kube
