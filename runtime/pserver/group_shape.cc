#include "runtime/pserver/group_shape.h"

#include "base/status.h"
#include "runtime/collective/arguments.h"

namespace paceline::pserver {

absl::Status check_shape(const collective::Group& group, const ClientOptions& options, bool server) {
  const int size = static_cast<int>(group.members.size());
  if (options.workers < 1 || options.servers < 1 || options.workers + options.servers != size) {
    return absl::InvalidArgumentError(str_cat("a group of ", size, " members is not ", options.workers,
                                              " workers and ", options.servers, " servers"));
  }
  if ((group.rank >= options.workers) != server) {
    return absl::InvalidArgumentError(str_cat("rank ", group.rank, " is no ", server ? "server" : "worker",
                                              ": ranks 0 to ", options.workers - 1,
                                              " are workers, those from ", options.workers, " on servers"));
  }
  return absl::OkStatus();
}

std::string name_of(const collective::Group& group, int rank) {
  return collective::name_rank(rank, group.members[static_cast<std::size_t>(rank)].member_id);
}

}  // namespace paceline::pserver
