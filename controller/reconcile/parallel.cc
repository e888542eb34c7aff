#include "controller/reconcile/parallel.h"

#include <algorithm>
#include <atomic>

namespace paceline::reconcile {

struct Parallel::Batch {
  const std::function<void(std::size_t)>* work = nullptr;
  std::size_t next = 0, count = 0, finished = 0;
};

Parallel::Parallel(int threads) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) {
      std::unique_lock lock(mutex_);
      while (more_.wait(lock, stop, [this] { return !batches_.empty(); })) (void)do_one(lock, nullptr);
    });
  }
}

Parallel::~Parallel() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

bool Parallel::do_one(std::unique_lock<std::mutex>& lock, Batch* only) {
  Batch* const batch = only != nullptr ? only : batches_.empty() ? nullptr : batches_.front();
  if (batch == nullptr || batch->next == batch->count) return false;
  const std::size_t piece = batch->next++;
  if (batch->next == batch->count) std::erase(batches_, batch);
  lock.unlock();
  (*batch->work)(piece);
  lock.lock();
  if (++batch->finished == batch->count) done_.notify_all();
  return true;
}

void Parallel::run(std::size_t count, const std::function<void(std::size_t)>& work) {
  if (count == 0) return;
  Batch batch{.work = &work, .count = count};
  std::unique_lock lock(mutex_);
  batches_.push_back(&batch);
  if (count > 1) more_.notify_all();
  while (do_one(lock, &batch)) {
  }
  done_.wait(lock, [&] { return batch.finished == batch.count; });
}

std::size_t slow_start(Parallel& parallel, std::size_t count, std::size_t largest,
                       const std::function<bool(std::size_t)>& create) {
  std::size_t called = 0;
  std::atomic<bool> well{true};
  for (std::size_t batch = 1; called < count && well.load(); batch = std::min(2 * batch, largest)) {
    const std::size_t first = called, size = std::min(batch, count - called);
    parallel.run(size, [&](std::size_t i) {
      if (!create(first + i)) well.store(false);
    });
    called += size;
  }
  return called;
}

}  // namespace paceline::reconcile
