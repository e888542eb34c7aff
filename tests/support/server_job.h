#pragma once

// A job of trainers in threads (thread_job.h) on parameter servers in the memory of the test
// (fake_servers.h).

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

#include "tests/support/fake_servers.h"
#include "tests/support/step_model.h"
#include "tests/support/thread_job.h"

namespace paceline {

using Hashes = std::map<Step, std::uint64_t>;

// The step model, on one server.
inline v1::TrainingSpec server_spec(
    std::int64_t steps, int workers,
    v1::ParameterServerSpec::Synchronization mode = v1::ParameterServerSpec::SYNCHRONOUS) {
  v1::TrainingSpec spec = step_spec(steps, 32);
  use_servers(spec, workers, 1);
  spec.mutable_parameter_server()->set_synchronization(mode);
  return spec;
}

// Workers m0, m1, ... and, last in the view, servers that are not run here.
class ServerJob {
 public:
  explicit ServerJob(const v1::TrainingSpec& spec, std::int64_t test_samples = kStepTest)
      : ServerJob(spec, step_workload(kStepTrain, test_samples)) {}
  ServerJob(const v1::TrainingSpec& spec, const trainer::OpenWorkload& workload, const Clock* clock = nullptr)
      : servers(spec), job(static_cast<int>(spec.parameter_server().workers()), spec, workload, clock) {
    for (int rank = 0; rank < job.size(); ++rank) job.member(rank).connect_servers = servers.connector();
    job.send_view(view(1, static_cast<int>(spec.parameter_server().servers())));
  }
  v1::View view(std::uint64_t generation, int count) const {
    std::vector<int> ranks;
    for (int rank = 0; rank < job.size() + count; ++rank) ranks.push_back(rank);
    v1::View view = job.view(generation, ranks);
    for (int rank = job.size(); rank < job.size() + count; ++rank) {
      view.mutable_members(rank)->set_role(v1::ROLE_PS);
    }
    return view;
  }
  // Its workers' servers from view 2 on.
  void continue_on(FakeServers& next) {
    for (int rank = 0; rank < job.size(); ++rank) {
      auto& member = job.member(rank);
      member.connect_servers = [now = member.connect_servers, then = next.connector()](
                                   collective::Fabric& fabric, const collective::Group& group,
                                   auto&&... rest) {
        return (group.generation == Generation{1} ? now : then)(fabric, group, rest...);
      };
    }
  }
  void run_to_the_end() {
    job.run();
    for (int rank = 0; rank < job.size(); ++rank) {
      EXPECT_EQ(job.member(rank).outcome.ending, trainer::Ending::kFinished)
          << job.member(rank).outcome.error;
    }
  }

  FakeServers servers;
  ThreadJob job;
};

// What the same training comes to by all-reduce.
inline Hashes hashes_by_all_reduce(int world, v1::TrainingSpec spec) {
  spec.clear_parameter_server();
  ThreadJob job(world, spec, step_workload(kStepTrain, kStepTest));
  std::vector<int> ranks;
  for (int rank = 0; rank < world; ++rank) ranks.push_back(rank);
  job.send_view(job.view(1, ranks));
  job.run();
  return job.member(0).hashes;
}

}  // namespace paceline
