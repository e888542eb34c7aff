#pragma once

// What the ranks of a view tell each other over the host's communicator before NCCL is asked for anything:
// every rank comes to the same result. One thread.

#include <nccl.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "runtime/collective/arguments.h"
#include "runtime/collective/communicator.h"
#include "runtime/nccl/origin.h"

namespace paceline::nccl {

class Agreement {
 public:
  explicit Agreement(collective::Communicator& host);

  // FAILED_PRECONDITION, on all ranks: two have one GPU (by its uuid; NCCL may hang on that, so it is asked
  // for here, too, though a trainer knows before), or different versions of NCCL.
  absl::StatusOr<Origin> on_setup(const std::string& gpu, int version, const std::optional<Parent>& parent,
                                  Deadline deadline);
  // Where the ranks of the view meet: those that rank 0, ranks_per_id, 2 * ranks_per_id, ... give as `mine`.
  absl::StatusOr<std::vector<ncclUniqueId>> on_ids(const ncclUniqueId& mine, int ranks_per_id,
                                                   Deadline deadline);
  // The first rank that has not shrunk its parent; nothing where all have.
  absl::StatusOr<std::optional<int>> on_shrunk(bool mine, Deadline deadline);
  // INVALID_ARGUMENT, on all ranks: they make different calls. Nothing is allocated.
  absl::Status on_call(const collective::Call& call, std::uint64_t number, Deadline deadline);

 private:
  // This rank's words to all, and theirs.
  static constexpr std::size_t kWords = 3;
  std::span<std::int64_t> words_of(int rank);
  absl::Status gather(Deadline deadline);

  collective::Communicator& host_;
  std::vector<std::int64_t> words_;
};

}  // namespace paceline::nccl
