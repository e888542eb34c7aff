#include "conformance_world.h"

#include <gtest/gtest.h>

namespace paceline::collective::testing {

std::string medium_name(Medium medium) {
  switch (medium) {
    case Medium::kInProcess:
      return "InProcess";
    case Medium::kSharedMemory:
      return "SharedMemory";
    case Medium::kTcp:
      return "Tcp";
  }
  return "?";
}

World::World(Medium medium, int size, std::uint64_t generation) {
  if (medium == Medium::kInProcess) {
    ranks_ = make_in_process_group(size, Generation{generation}, clock_);
  } else {
    connect(medium, size, generation);
  }
}

void World::connect(Medium medium, int size, std::uint64_t generation) {
  Group group;
  group.generation = Generation{generation};
  group.transport = medium == Medium::kTcp ? TransportKind::kTcp : TransportKind::kSharedMemory;
  group.key.fill(7);
  for (int r = 0; r < size; ++r) {
    FabricOptions options;
    options.arena_bytes = std::size_t{64} << 20;
    auto fabric = Fabric::create(options, clock_);
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    group.members.push_back({"worker-" + std::to_string(r), (*fabric)->address()});
    fabrics_.push_back(std::move(*fabric));
  }
  ranks_.resize(static_cast<std::size_t>(size));
  std::vector<absl::Status> statuses(static_cast<std::size_t>(size));
  run([&](int r) {
    Group mine = group;
    mine.rank = r;
    auto communicator = fabrics_[static_cast<std::size_t>(r)]->connect(mine, deadline());
    statuses[static_cast<std::size_t>(r)] = communicator.status();
    if (communicator.ok()) ranks_[static_cast<std::size_t>(r)] = std::move(*communicator);
  });
  for (const absl::Status& status : statuses) ASSERT_TRUE(status.ok()) << status;
}

std::span<std::byte> World::registered(int r, std::size_t bytes) {
  if (fabrics_.empty()) {
    plain_.emplace_back(bytes + 64);
    return std::span(plain_.back()).first(bytes);
  }
  auto memory = fabrics_[static_cast<std::size_t>(r)]->arena().allocate(bytes);
  EXPECT_TRUE(memory.ok()) << memory.status();
  return memory.ok() ? *memory : std::span<std::byte>();
}

void World::run(const std::function<void(int)>& body) {
  std::vector<std::jthread> threads;
  for (int r = 0; r < size(); ++r) threads.emplace_back([&body, r] { body(r); });
}

}  // namespace paceline::collective::testing
