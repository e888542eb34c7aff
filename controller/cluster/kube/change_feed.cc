#include "controller/cluster/kube/change_feed.h"

#include <utility>

namespace paceline::kube {

void ChangeFeed::publish(const std::string& key) {
  const std::lock_guard lock(mutex_);
  if (!receiver_) return;
  keys_.insert(key);
  changed_.notify_all();
}

void ChangeFeed::set_receiver(cluster::Cluster::OnChange receiver) {
  std::unique_lock lock(mutex_);
  receiver_ = std::move(receiver);
  if (!receiver_) keys_.clear();
  changed_.wait(lock, [this] { return !calling_; });
  changed_.notify_all();
}

void ChangeFeed::run(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return receiver_ && !keys_.empty(); })) {
    const std::set<std::string> keys = std::exchange(keys_, {});
    const cluster::Cluster::OnChange receiver = receiver_;
    calling_ = true;
    lock.unlock();
    for (const std::string& key : keys) {
      if (!stop.stop_requested()) receiver(key);
    }
    lock.lock();
    calling_ = false;
    changed_.notify_all();
  }
}

}  // namespace paceline::kube
