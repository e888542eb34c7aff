// Sharing memory, a worker copies weights while its servers still make them: else the servers would stand
// while it copies, and it while they sum. What it has of them counts for nothing before kWeights says that
// all is made; a server that stops in the middle leaves it waiting for that.

#include <algorithm>

#include "base/status.h"
#include "runtime/pserver/client_impl.h"

namespace paceline::pserver {

absl::Status ClientImpl::on_coming(int index, const FrameHeader& header, Bytes message) {
  Server& from = server(index);
  if (!shared_ || from.has_weights || from.coming.has_value() || unit_ >= 0) return unexpected(header);
  ComingMessage said;
  PL_RETURN_IF_ERROR(decode(message, said));
  const std::size_t size = from.arena.memory().size();
  if (said.made % sizeof(MadeCount) != 0 || said.made >= size || size - said.made < sizeof(MadeCount)) {
    return absl::InvalidArgumentError(
        str_cat("says that it counts at ", said.made, " of its arena of ", size, " bytes"));
  }
  Coming coming{.version = header.number, .begin = header.begin};
  PL_ASSIGN_OR_RETURN(coming.slab, find_share(from.arena, header.begin, map_.share(index)));
  coming.made = reinterpret_cast<const MadeCount*>(from.arena.memory().data() + said.made);
  from.coming = coming;
  idle_looks_ = 0;
  return absl::OkStatus();
}

// Each look is followed by one at the sockets. Where members have not a core each, the server needs this one:
// it looks for a microsecond or so, else for a hundred.
bool ClientImpl::read_ahead() {
  bool waits = false, moved = false;
  for (int s = 0; s < options_.servers; ++s) {
    auto& coming = server(s).coming;
    if (!coming.has_value()) continue;
    const std::size_t share = map_.share(s);
    const std::size_t made = std::min<std::size_t>(coming->made->load(std::memory_order_acquire), share);
    if (made > coming->read) {
      copy_share(map_, s, coming->slab, coming->read, made, weights_);
      floats_ahead_ += made - coming->read;
      coming->read = made;
      bytes_came_ = moved = true;
    }
    waits |= coming->read < share;
  }
  idle_looks_ = moved ? 0 : idle_looks_ + 1;
  return waits && idle_looks_ <= spin_calls_;
}

}  // namespace paceline::pserver
