// Ranks as threads: the shared page lies on the heap, and every address is everybody's.

#include <cstdlib>
#include <new>

#include "base/check.h"
#include "runtime/collective/fabric.h"
#include "runtime/collective/shared_communicator.h"

namespace paceline::collective {

std::vector<std::unique_ptr<Communicator>> make_in_process_group(int world_size, Generation generation,
                                                                 const Clock& clock) {
  constexpr std::size_t kPage = 4096;
  const std::size_t bytes = (transport::SharedGroup::bytes_needed(world_size) + kPage - 1) / kPage * kPage;
  std::shared_ptr<void> page(std::aligned_alloc(kPage, bytes), std::free);
  PL_CHECK(page != nullptr, "memory for the shared page");
  const std::span<std::byte> memory(static_cast<std::byte*>(page.get()), bytes);
  transport::SharedGroup::format(memory, world_size);

  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    auto group = transport::SharedGroup::attach(memory, world_size, rank,
                                                transport::SpinPolicy::for_members(world_size));
    PL_CHECK(group.ok(), "a page that was just made");
    SharedWiring wiring{*group, generation, {}, {}, nullptr, page, 0};
    ranks.push_back(std::make_unique<SharedCommunicator>(std::move(wiring), clock));
  }
  return ranks;
}

}  // namespace paceline::collective
