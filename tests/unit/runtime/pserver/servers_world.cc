#include "servers_world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "base/status.h"
#include "runtime/collective/fault.h"

namespace paceline::pserver {

std::string medium_name(const ::testing::TestParamInfo<Medium>& info) {
  constexpr const char* kNames[] = {"SharedMemory", "Tcp", "Tls"};
  return kNames[static_cast<int>(info.param)];
}

v1::OptimizerSpec sgd(double rate, double momentum) {
  v1::OptimizerSpec spec;
  spec.set_type(v1::OptimizerSpec::SGD);
  spec.set_learning_rate(rate);
  spec.set_momentum(momentum);
  return spec;
}

v1::ParameterServerSpec asynchronous() {
  v1::ParameterServerSpec mode;
  mode.set_synchronization(v1::ParameterServerSpec::ASYNCHRONOUS);
  return mode;
}

absl::Status ServersWorld::make_fabrics() {
  group_.generation = Generation{3};
  group_.transport = spec_.medium == Medium::kSharedMemory ? collective::TransportKind::kSharedMemory
                                                           : collective::TransportKind::kTcp;
  group_.encrypted = spec_.medium == Medium::kTls;
  group_.key.fill(9);
  for (int r = 0; r < spec_.workers + spec_.servers; ++r) {
    collective::FabricOptions options;
    options.arena_bytes = spec_.arena_bytes;
    PL_ASSIGN_OR_RETURN(auto fabric, collective::Fabric::create(options, clock_));
    if (std::ranges::count(spec_.strangers, r) > 0) {  // as a server does, before others meet it
      PL_RETURN_IF_ERROR(fabric->arena().reserve(1));
    }
    const std::string name =
        r < spec_.workers ? "worker-" + std::to_string(r) : "ps-" + std::to_string(r - spec_.workers);
    group_.members.push_back({name, fabric->address()});
    fabrics_.push_back(std::move(fabric));
  }
  return absl::OkStatus();
}

ServersWorld::ServersWorld(const WorldSpec& spec, std::optional<float> weights) : spec_(spec) {
  absl::Status status = connect(spec);
  if (status.ok() && weights) status = begin(Floats(spec.elements, *weights));
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

// A worker's are all servers; a server's all workers, and the first server or, of that, all others.
std::vector<int> ServersWorld::peers_of(int rank) const {
  const int w = spec_.workers;
  std::vector<int> peers;
  for (int peer = 0; peer < w + spec_.servers; ++peer) {
    if (peer != rank && (peer < w) != (rank < w)) peers.push_back(peer);
    if (peer != rank && peer >= w && rank >= w && (peer == w || rank == w)) peers.push_back(peer);
  }
  return peers;
}

absl::Status ServersWorld::connect(const WorldSpec& spec) {
  if (spec_.layout.elements == 0) {
    spec_.layout = {.parameters = {tensor::Parameter{
                        .name = "w", .dims = {}, .offset = 0, .count = spec.elements, .decay = true}},
                    .elements = spec.elements,
                    .trained_elements = spec.elements};
  }
  const auto w = static_cast<std::size_t>(spec.workers), s = static_cast<std::size_t>(spec.servers);
  spec_.mode.set_workers(spec.workers);
  spec_.mode.set_servers(spec.servers);
  if (spec_.mode.gradients_per_step() == 0) spec_.mode.set_gradients_per_step(spec.workers);
  if (spec_.mode.units_per_step() == 0) spec_.mode.set_units_per_step(spec.workers);
  PL_RETURN_IF_ERROR(make_fabrics());
  const ClientOptions shape{spec.workers, spec.servers, spec.slice_bytes, spec.tables, spec.stall_limit};
  clients_.resize(w);
  servers_.resize(s);
  strangers_.resize(w + s);
  results_.lock()->assign(s, absl::UnknownError("it runs"));
  std::vector<absl::Status> statuses(w + s);
  for (std::size_t k = 0; k < w; ++k) {
    weights_.emplace_back(spec_.layout.elements);
    transport::Arena& arena = fabrics_[k]->arena();
    PL_ASSIGN_OR_RETURN(const auto dense, arena.allocate(spec_.layout.elements * sizeof(float)));
    gradients_.emplace_back(reinterpret_cast<float*>(dense.data()), spec_.layout.elements);
    PL_ASSIGN_OR_RETURN(const auto rows, arena.allocate(spec_.row_floats * sizeof(float)));
    row_gradients_.emplace_back(reinterpret_cast<float*>(rows.data()), spec_.row_floats);
  }
  {
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r < w + s; ++r) {
      threads.emplace_back([&, r] {
        collective::Group mine = group_;
        mine.rank = static_cast<int>(r);
        if (std::find(spec_.strangers.begin(), spec_.strangers.end(), mine.rank) != spec_.strangers.end()) {
          auto links = fabrics_[r]->meet(mine, peers_of(mine.rank), 2, deadline());
          statuses[r] = links.status();
          if (links.ok()) strangers_[r] = std::move(*links);
        } else if (r >= w) {
          ServerOptions options;
          options.shape = shape;
          options.optimizer = spec_.optimizer;
          options.delay_compensation = spec_.mode.delay_compensation();
          options.units_per_step = spec_.mode.units_per_step();
          options.holds = holds_of(spec_.mode);
          options.policy = [this](const PolicyStart& start) { return make_policy(spec_.mode, start); };
          options.on_lost = [this, index = static_cast<int>(r - w)](int rank, const absl::Status& why) {
            losses_.lock()->push_back({index, rank, why});
            if (spec_.when_lost != nullptr) spec_.when_lost(index);
          };
          options.max_kept_bytes = spec_.max_kept_bytes;
          options.ahead_floats = spec_.ahead_floats;
          auto server =
              Server::connect(*fabrics_[r], mine, options,
                              spec_.server_clock != nullptr ? *spec_.server_clock : clock_, deadline());
          statuses[r] = server.status();
          if (server.ok()) servers_[r - w] = std::move(*server);
        } else {
          auto client = Client::connect(*fabrics_[r], mine, shape, spec_.layout, weights_[r], gradients_[r],
                                        spec_.clock != nullptr ? *spec_.clock : clock_, deadline());
          statuses[r] = client.status();
          if (client.ok()) clients_[r] = std::move(*client);
        }
      });
    }
  }
  for (const absl::Status& status : statuses) PL_RETURN_IF_ERROR(status);
  threads_.resize(s);
  if (!spec.run_servers) return absl::OkStatus();
  for (std::size_t k = 0; k < s; ++k) {
    if (servers_[k] == nullptr) continue;
    threads_[k] = std::jthread([this, k] {
      const absl::Status ended = servers_[k]->run(deadline());
      (*results_.lock())[k] = ended;
    });
  }
  return absl::OkStatus();
}

ServersWorld::~ServersWorld() {
  clients_.clear();
  for (auto& server : servers_) {
    if (server != nullptr) server->close(absl::AbortedError("the test is over"));
  }
}

void ServersWorld::drop_server(int s) {
  const auto k = static_cast<std::size_t>(s);
  servers_[k]->close(absl::AbortedError("killed"));
  threads_[k] = {};
  servers_[k].reset();
}

absl::Status ServersWorld::begin(std::span<const float> weights, sparse::RowSource* rows) {
  InitialState state;
  state.weights = weights;
  state.rows = rows;
  state.start.total_steps = spec_.total_steps;
  return client(0).initialize(state, deadline());
}

TurnResult ServersWorld::turn(int w) {
  const auto turn = client(w).wait_turn(deadline());
  EXPECT_TRUE(turn.ok()) << turn.status();
  return turn.ok() ? *turn : TurnResult{.finished = true};
}

absl::Status ServersWorld::push_and_commit(int w, const Commit& commit) {
  const absl::Status pushed = client(w).push(0, spec_.layout.elements);
  return pushed.ok() ? client(w).commit(commit) : pushed;
}

absl::Status ServersWorld::push_same(int w, float value, const Commit& commit) {
  std::ranges::fill(gradient(w), value);
  return push_and_commit(w, commit);
}

void ServersWorld::each_worker(const std::function<void(int)>& body) {
  std::vector<std::jthread> threads;
  for (int w = 0; w < spec_.workers; ++w) threads.emplace_back([&body, w] { body(w); });
}

std::vector<absl::Status> ServersWorld::end() {
  for (auto& client : clients_) {
    if (client != nullptr) {
      const absl::Status left = client->leave();
      EXPECT_TRUE(left.ok()) << left;
    }
  }
  threads_.clear();
  return results();
}

void ServersWorld::end_well() {
  for (const absl::Status& ended : end()) EXPECT_TRUE(ended.ok()) << ended;
}

bool ServersWorld::wait_for_loss(int server, int rank, absl::Status* why) {
  const auto lost = [&](const std::vector<Loss>& losses) {
    return std::find_if(losses.begin(), losses.end(),
                        [&](const Loss& loss) { return loss.server == server && loss.rank == rank; });
  };
  bool held = false;
  auto losses = losses_.lock_when([&](const auto& all) { return lost(all) != all.end(); },
                                  std::chrono::seconds(30), &held);
  if (held && why != nullptr) *why = lost(*losses)->why;
  return held;
}

void expect_fault(const absl::Status& status, absl::StatusCode code, int rank, const std::string& says) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_EQ(collective::faulty_rank(status), rank) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(says));
}

void train_beside_snapshots(ServersWorld& world, const std::function<void(const TurnResult&)>& take,
                            const std::function<void(int, const TurnResult&)>& push) {
  std::promise<void> begins;
  const std::shared_future<void> begun = begins.get_future().share();
  world.each_worker([&](int w) {
    std::jthread collecting;
    for (int k = 0;; ++k) {
      const auto turn = world.client(w).wait_turn(world.deadline());
      ASSERT_TRUE(turn.ok()) << turn.status();
      if (turn->finished) break;
      if (w == 1 && k == 20) {  // else it may do everything before worker 0 has begun one
        ASSERT_EQ(begun.wait_for(std::chrono::seconds(30)), std::future_status::ready);
      }
      if (w == 0 && k % 10 == 3 && world.client(0).begin_snapshot().ok()) {
        if (k == 3) begins.set_value();
        if (collecting.joinable()) collecting.join();  // the last one is taken, but perhaps still compared
        collecting = std::jthread([&take, turn = *turn] { take(turn); });
      }
      ASSERT_NO_FATAL_FAILURE(push(w, *turn));
    }
  });
}

RandomMode make_random(WorldSpec& spec, std::uint64_t seed, Rng& rng) {
  spec.workers = static_cast<int>(2 + rng.below(3));
  spec.servers = static_cast<int>(1 + rng.below(3));
  spec.total_steps = static_cast<Step>(2 + rng.below(10));
  spec.optimizer = sgd(1);
  if (rng.below(2) == 0) spec.ahead_floats = kAheadFloats;  // else also such small weights
  RandomMode random;
  random.parts = spec.workers;
  if (seed % 4 == 1) random.parts = spec.workers - 1;  // a backup worker
  if (seed % 4 == 2) spec.mode.set_synchronization(v1::ParameterServerSpec::ASYNCHRONOUS);
  if (seed % 4 == 3) spec.mode.set_synchronization(v1::ParameterServerSpec::BOUNDED_STALENESS);
  spec.mode.set_staleness(static_cast<std::int64_t>(rng.below(3)));
  spec.mode.set_units_per_step(random.parts);
  spec.mode.set_gradients_per_step(random.parts);
  if (seed % 4 != 0) random.victim = static_cast<int>(rng.below(static_cast<std::uint64_t>(spec.workers)));
  random.turns = static_cast<int>(rng.below(4));
  random.units = spec.total_steps * random.parts;
  return random;
}

}  // namespace paceline::pserver
