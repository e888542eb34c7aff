#pragma once

// The jobs of an API server for a board: what an Informer brings goes to the board at once, into the samples
// of its job's status, and to the history where one is kept. One thread calls.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "controller/cluster/kube/object_store.h"
#include "controller/dashboard/board.h"
#include "controller/dashboard/job_history.h"
#include "controller/dashboard/job_samples.h"

namespace paceline::dashboard {

class JobFeed final : public kube::ObjectSink {
 public:
  // All outlive it. `history` null: none is kept.
  JobFeed(Board& board, JobSamples& samples, JobHistory* history)
      : board_(board), samples_(samples), history_(history) {}

  void begin(std::uint64_t, std::string_view) override {}
  void put(const kube::Json& object, std::uint64_t round, Keys& changed) override;
  void remove(const kube::Json& object, Keys& changed) override;
  void sweep(std::uint64_t round, std::string_view resource_version, Keys& changed) override;

 private:
  struct Known {
    std::string uid;
    std::uint64_t round = 0;
  };
  void forget_job(const std::string& uid);
  void forget(const std::string& key, Keys& changed);

  Board& board_;
  JobSamples& samples_;
  JobHistory* const history_;
  std::map<std::string, Known> known_;  // by key
};

}  // namespace paceline::dashboard
