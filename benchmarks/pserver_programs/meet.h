#pragma once

// How the processes of a measurement (processes.h) become a group of runtime/collective.

#include <span>
#include <string>

#include "benchmarks/pserver_programs/processes.h"
#include "runtime/collective/fabric.h"
#include "tests/support/address_bytes.h"

namespace bench {

// All processes of the meeting, by index: the first thing that they say there.
inline paceline::collective::Group meet(const paceline::collective::Fabric& fabric,
                                        const std::string& transport, int index, Meeting& meeting) {
  using paceline::collective::TransportKind;
  const std::vector<std::byte> mine = paceline::pack(fabric.address());
  paceline::collective::Group group;
  group.generation = paceline::Generation{1};
  group.rank = index;
  group.encrypted = transport == "tls";
  group.transport =
      transport == "tcp" || group.encrypted ? TransportKind::kTcp : TransportKind::kSharedMemory;
  for (const std::string& text :
       meeting.exchange(std::string(reinterpret_cast<const char*>(mine.data()), mine.size()))) {
    group.members.push_back({"", paceline::unpack(std::as_bytes(std::span(text)))});
  }
  return group;
}

}  // namespace bench
