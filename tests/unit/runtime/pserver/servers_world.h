#pragma once

// Workers and servers of one view in one process: each server in a thread of its own, workers driven by the
// test.

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/guarded.h"
#include "base/rng.h"
#include "runtime/collective/fabric.h"
#include "runtime/pserver/client.h"
#include "runtime/pserver/server.h"

namespace paceline::pserver {

using Floats = std::vector<float>;

enum class Medium { kSharedMemory, kTcp, kTls };
// A suite of ServersTest runs over each: INSTANTIATE_TEST_SUITE_P(Media, Suite, media(), medium_name).
inline auto media() {
  return ::testing::Values(Medium::kSharedMemory, Medium::kTcp);
}
// With TLS, which strangers do not speak.
inline auto all_media() {
  return ::testing::Values(Medium::kSharedMemory, Medium::kTcp, Medium::kTls);
}
std::string medium_name(const ::testing::TestParamInfo<Medium>& info);

struct WorldSpec {
  Medium medium = Medium::kSharedMemory;
  int workers = 2;
  int servers = 2;
  std::size_t elements = 1000;
  std::size_t slice_bytes = 1024;
  v1::OptimizerSpec optimizer;
  v1::ParameterServerSpec mode;  // workers, servers, units per step are filled in where they are 0
  Step total_steps = 5;
  tensor::ParameterLayout layout;  // empty: one parameter that decays
  bool run_servers = true;
  std::vector<int> strangers;  // ranks that are not made: the test has their sockets instead
  std::vector<sparse::TableSpec> tables;
  std::size_t row_floats = 0;  // of each worker's memory for gradients of rows
  std::uint64_t max_kept_bytes = kMaxKeptBytes;
  std::size_t ahead_floats = 0;         // weights are read while they are made, be they ever so few
  const Clock* clock = nullptr;         // the workers'; null: the machine's
  const Clock* server_clock = nullptr;  // likewise
  Duration stall_limit = kStallLimit;
  std::size_t arena_bytes = std::size_t{256} << 20;
  std::function<void(int server)> when_lost;  // in the server's thread, when it has lost a worker
};

v1::OptimizerSpec sgd(double rate, double momentum = 0);
v1::ParameterServerSpec asynchronous();

// Tests over all transports.
class ServersTest : public ::testing::TestWithParam<Medium> {
 protected:
  WorldSpec spec(WorldSpec spec = {}) const {
    spec.medium = GetParam();
    if (spec.optimizer.learning_rate() == 0) spec.optimizer = sgd(0.5);
    return spec;
  }
};

class ServersWorld {
 public:
  // Connects everybody, and throws where that is not possible. `weights`: begins with these, all the same.
  explicit ServersWorld(const WorldSpec& spec, std::optional<float> weights = std::nullopt);
  ~ServersWorld();

  Client& client(int w) { return *clients_[static_cast<std::size_t>(w)]; }
  void drop_client(int w) { clients_[static_cast<std::size_t>(w)].reset(); }
  Server& server(int s) { return *servers_[static_cast<std::size_t>(s)]; }
  // Ends a server as the death of its process does: no word to anybody.
  void drop_server(int s);
  std::span<float> weights(int w) { return weights_[static_cast<std::size_t>(w)]; }
  std::span<float> gradient(int w) { return gradients_[static_cast<std::size_t>(w)]; }
  std::span<float> row_gradient(int w) { return row_gradients_[static_cast<std::size_t>(w)]; }
  std::vector<collective::PeerLink>& stranger(int rank) { return strangers_[static_cast<std::size_t>(rank)]; }
  transport::Arena& arena(int rank) { return fabrics_[static_cast<std::size_t>(rank)]->arena(); }
  const tensor::ParameterLayout& layout() const { return spec_.layout; }

  // Worker 0's word: these weights, and these rows, at step 0.
  absl::Status begin(std::span<const float> weights, sparse::RowSource* rows = nullptr);
  // Waits for a worker's turn. Where there is none the test fails, and the turn says that all is over.
  TurnResult turn(int w);
  // Pushes all of the gradient in one range, and commits.
  absl::Status push_and_commit(int w, const Commit& commit = {});
  // The same, of a gradient that is `value` everywhere.
  absl::Status push_same(int w, float value, const Commit& commit = {});
  // body(w) in one thread per worker.
  void each_worker(const std::function<void(int)>& body);
  // All workers leave; what the servers' run() returned, by server.
  std::vector<absl::Status> end();
  // The same, and no server has failed.
  void end_well();
  std::vector<absl::Status> results() { return *results_.lock(); }
  struct Loss {
    int server, rank;
    absl::Status why;
  };
  // Waits until a server has lost a worker.
  bool wait_for_loss(int server, int rank, absl::Status* why = nullptr);

  const Clock& clock() const { return clock_; }
  Deadline deadline(Duration wait = std::chrono::seconds(60)) const {
    return Deadline::after(clock_.now(), wait);
  }

 private:
  absl::Status make_fabrics();
  absl::Status connect(const WorldSpec& spec);
  std::vector<int> peers_of(int rank) const;

  WorldSpec spec_;
  SystemClock clock_;
  collective::Group group_;
  std::vector<std::unique_ptr<collective::Fabric>> fabrics_;
  std::vector<std::vector<float>> weights_;
  std::vector<std::span<float>> gradients_, row_gradients_;
  std::vector<std::vector<collective::PeerLink>> strangers_;
  Guarded<std::vector<absl::Status>> results_;
  Guarded<std::vector<Loss>> losses_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::jthread> threads_;  // of the servers
};

// The member at fault for an error, and what its message says besides.
void expect_fault(const absl::Status& status, absl::StatusCode code, int rank, const std::string& says = "");

// All workers train to the end: `push(w, turn)` is one's work for a turn, in its own thread. From every tenth
// turn of worker 0 on `take(turn)` collects a snapshot that it has begun, in one more thread, one at a time;
// there is one at least.
void train_beside_snapshots(ServersWorld& world, const std::function<void(const TurnResult&)>& take,
                            const std::function<void(int, const TurnResult&)>& push);

// 2 to 4 workers on 1 to 3 servers in a random mode, for 2 to 11 steps with SGD of rate 1, so that sums of
// integers are exact. One worker may die from its turn `turns` on.
struct RandomMode {
  std::int64_t parts = 0;  // units of a step
  int victim = 0;          // 0: nobody, as where all are needed
  int turns = 0;
  Unit units = 0;  // of all steps
};
RandomMode make_random(WorldSpec& spec, std::uint64_t seed, Rng& rng);

// A server's thread stands still in the middle of what it does, once, until it is released.
class StandStill {
 public:
  void stand() {
    if (std::exchange(stood_, true)) return;
    entered_.set_value();
    released_.get_future().wait();
  }
  void wait_until_it_stands() { entered_.get_future().wait(); }
  void release() {
    if (!std::exchange(done_, true)) released_.set_value();
  }

 private:
  std::promise<void> entered_, released_;
  bool stood_ = false, done_ = false;
};

struct Releases {
  StandStill& still;
  ~Releases() { still.release(); }
};

}  // namespace paceline::pserver
