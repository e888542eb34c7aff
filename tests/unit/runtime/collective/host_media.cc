// The media of runtime/collective itself.

#include <gtest/gtest.h>

#include "conformance_world.h"
#include "runtime/collective/fabric.h"

namespace paceline::collective {

namespace {

class Threads final : public Wiring {
 public:
  std::vector<std::unique_ptr<Communicator>> connect(int size, Generation generation,
                                                     const Clock& clock) override {
    return make_in_process_group(size, generation, clock);
  }
};

class Fabrics final : public Wiring {
 public:
  Fabrics(TransportKind kind, bool encrypted) : kind_(kind), encrypted_(encrypted) {}

  std::vector<std::unique_ptr<Communicator>> connect(int size, Generation generation,
                                                     const Clock& clock) override {
    Group group;
    group.generation = generation;
    group.transport = kind_;
    group.encrypted = encrypted_;
    group.key.fill(7);
    for (int r = 0; r < size; ++r) {
      FabricOptions options;
      options.arena_bytes = std::size_t{64} << 20;
      auto fabric = Fabric::create(options, clock);
      EXPECT_TRUE(fabric.ok()) << fabric.status();
      if (!fabric.ok()) return {};
      group.members.push_back({"worker-" + std::to_string(r), (*fabric)->address()});
      fabrics_.push_back(std::move(*fabric));
    }
    std::vector<std::unique_ptr<Communicator>> ranks(static_cast<std::size_t>(size));
    std::vector<absl::Status> statuses(ranks.size());
    run_ranks(size, [&](int r) {
      Group mine = group;
      mine.rank = r;
      auto communicator = fabrics_[static_cast<std::size_t>(r)]->connect(
          mine, Deadline::after(clock.now(), std::chrono::seconds(60)));
      statuses[static_cast<std::size_t>(r)] = communicator.status();
      if (communicator.ok()) ranks[static_cast<std::size_t>(r)] = std::move(*communicator);
    });
    for (const absl::Status& status : statuses) {
      EXPECT_TRUE(status.ok()) << status;
      if (!status.ok()) return {};
    }
    return ranks;
  }

  std::span<std::byte> registered(int r, std::size_t bytes) override {
    auto memory = fabrics_[static_cast<std::size_t>(r)]->arena().allocate(bytes);
    EXPECT_TRUE(memory.ok()) << memory.status();
    return memory.ok() ? *memory : std::span<std::byte>();
  }

 private:
  const TransportKind kind_;
  const bool encrypted_;
  std::vector<std::unique_ptr<Fabric>> fabrics_;
};

}  // namespace

std::vector<Medium> media() {
  return {Medium::kInProcess, Medium::kSharedMemory, Medium::kTcp, Medium::kTls};
}

std::unique_ptr<Wiring> make_wiring(Medium medium) {
  if (medium == Medium::kInProcess) return std::make_unique<Threads>();
  const bool encrypted = medium == Medium::kTls;
  const bool tcp = medium == Medium::kTcp || encrypted;
  return std::make_unique<Fabrics>(tcp ? TransportKind::kTcp : TransportKind::kSharedMemory, encrypted);
}

}  // namespace paceline::collective
