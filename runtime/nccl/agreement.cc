#include "runtime/nccl/agreement.h"

#include <array>
#include <cstring>
#include <utility>

#include "base/fnv1a.h"
#include "base/status.h"
#include "base/text.h"
#include "runtime/nccl/library.h"

namespace paceline::nccl {

namespace {

std::int64_t hash_of(const std::string& text, std::uint64_t seed) {
  return static_cast<std::int64_t>(fnv1a(text, seed));
}

std::string call_text(std::uint64_t fingerprint, std::int64_t count) {
  collective::Call call;
  call.kind = static_cast<collective::Kind>(fingerprint & 0xff);
  call.dtype = static_cast<DType>(fingerprint >> 8 & 0xff);
  call.count = static_cast<std::size_t>(count);
  return collective::describe(call);
}

constexpr std::int64_t kNone = -1;

}  // namespace

Agreement::Agreement(collective::Communicator& host)
    : host_(host), words_(static_cast<std::size_t>(host.world_size()) * kWords) {}

std::span<std::int64_t> Agreement::words_of(int rank) {
  return std::span(words_).subspan(static_cast<std::size_t>(rank) * kWords, kWords);
}

absl::Status Agreement::gather(Deadline deadline) {
  return host_.all_gather(words_.data(), words_.size(), DType::kI64, deadline);
}

absl::StatusOr<Origin> Agreement::on_setup(const std::string& gpu, int version,
                                           const std::optional<Parent>& parent, Deadline deadline) {
  struct Words {
    std::int64_t gpu[2], version, view, rank, world;
  };
  static_assert(sizeof(Words) == 6 * sizeof(std::int64_t));
  const int size = host_.world_size();
  std::vector<Words> all(static_cast<std::size_t>(size));
  Words& mine = all[static_cast<std::size_t>(host_.rank())];
  mine = {{hash_of(gpu, 0), hash_of(gpu, 1)}, version, kNone, kNone, kNone};
  if (parent.has_value()) {
    mine.view = static_cast<std::int64_t>(parent->view.value);
    mine.rank = parent->rank;
    mine.world = parent->world;
  }
  PL_RETURN_IF_ERROR(host_.all_gather(all.data(), all.size() * (sizeof(Words) / sizeof(std::int64_t)),
                                      DType::kI64, deadline));
  std::vector<std::optional<Parent>> parents;
  for (std::size_t a = 0; a < all.size(); ++a) {
    if (all[a].version != all[0].version) {
      return absl::FailedPreconditionError(
          str_cat("rank ", a, " has NCCL ", version_text(static_cast<int>(all[a].version)), ", and rank 0 ",
                  version_text(static_cast<int>(all[0].version)), ": all need the same"));
    }
    for (std::size_t b = 0; b < a; ++b) {
      if (all[a].gpu[0] == all[b].gpu[0] && all[a].gpu[1] == all[b].gpu[1])
        return absl::FailedPreconditionError(
            str_cat("rank ", b, " and rank ", a, " have the same GPU, which NCCL does not serve"));
    }
    parents.emplace_back();
    if (all[a].rank == kNone) continue;
    parents.back() = {.view = {static_cast<std::uint64_t>(all[a].view)},
                      .rank = static_cast<int>(all[a].rank),
                      .world = static_cast<int>(all[a].world)};
  }
  return origin_of(parents);
}

absl::StatusOr<std::vector<ncclUniqueId>> Agreement::on_ids(const ncclUniqueId& mine, int ranks_per_id,
                                                            Deadline deadline) {
  std::vector<ncclUniqueId> ids;
  for (int root = 0; root < host_.world_size(); root += ranks_per_id) {
    std::array<std::int64_t, sizeof(ncclUniqueId) / sizeof(std::int64_t)> words{};
    if (root == host_.rank()) std::memcpy(words.data(), &mine, sizeof mine);
    PL_RETURN_IF_ERROR(host_.broadcast(words.data(), words.size(), DType::kI64, root, deadline));
    std::memcpy(&ids.emplace_back(), words.data(), sizeof mine);
  }
  return ids;
}

absl::StatusOr<std::optional<int>> Agreement::on_shrunk(bool mine, Deadline deadline) {
  words_of(host_.rank())[0] = mine ? 1 : 0;
  PL_RETURN_IF_ERROR(gather(deadline));
  for (int r = 0; r < host_.world_size(); ++r) {
    if (words_of(r)[0] == 0) return r;
  }
  return std::nullopt;
}

absl::Status Agreement::on_call(const collective::Call& call, std::uint64_t number, Deadline deadline) {
  const std::span<std::int64_t> mine = words_of(host_.rank());
  mine[0] = static_cast<std::int64_t>(call.fingerprint());
  mine[1] = static_cast<std::int64_t>(call.count);
  mine[2] = static_cast<std::int64_t>(number);
  PL_RETURN_IF_ERROR(gather(deadline));
  const std::span<const std::int64_t> first = words_of(0);
  for (int r = 1; r < host_.world_size(); ++r) {
    const std::span<const std::int64_t> theirs = words_of(r);
    if (std::memcmp(theirs.data(), first.data(), theirs.size_bytes()) == 0) continue;
    return absl::InvalidArgumentError(
        str_cat("rank ", r, " called ", call_text(static_cast<std::uint64_t>(theirs[0]), theirs[1]),
                " as its operation ", theirs[2], ", and rank 0 ",
                call_text(static_cast<std::uint64_t>(first[0]), first[1]), " as its operation ", first[2]));
  }
  return absl::OkStatus();
}

}  // namespace paceline::nccl
