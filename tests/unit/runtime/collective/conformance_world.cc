#include "conformance_world.h"

namespace paceline::collective {

std::string medium_name(Medium medium) {
  switch (medium) {
    case Medium::kInProcess:
      return "InProcess";
    case Medium::kSharedMemory:
      return "SharedMemory";
    case Medium::kTcp:
      return "Tcp";
    case Medium::kTls:
      return "Tls";
    case Medium::kNccl:
      return "Nccl";
    case Medium::kNcclShrunk:
      return "NcclShrunk";
  }
  return "?";
}

std::span<std::byte> Wiring::registered(int, std::size_t bytes) {
  plain_.emplace_back(bytes + 64);
  return std::span(plain_.back()).first(bytes);
}

void run_ranks(int size, const std::function<void(int)>& body) {
  std::vector<std::jthread> threads;
  for (int r = 0; r < size; ++r) threads.emplace_back([&body, r] { body(r); });
}

World::World(Medium medium, int size, std::uint64_t generation)
    : wiring_(make_wiring(medium)), ranks_(wiring_->connect(size, Generation{generation}, clock_)) {}

}  // namespace paceline::collective
