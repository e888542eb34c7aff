#include "runtime/nccl/agreement.h"

#include <array>
#include <cstring>

#include "base/status.h"
#include "base/text.h"
#include "runtime/nccl/library.h"

namespace paceline::nccl {

namespace {

// Of a text, FNV-1a.
std::int64_t hash_of(const std::string& text, std::uint64_t seed) {
  std::uint64_t hash = 14695981039346656037U ^ seed;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return static_cast<std::int64_t>(hash);
}

std::string call_text(std::uint64_t fingerprint, std::int64_t count) {
  collective::Call call;
  call.kind = static_cast<collective::Kind>(fingerprint & 0xff);
  call.dtype = static_cast<DType>(fingerprint >> 8 & 0xff);
  call.count = static_cast<std::size_t>(count);
  return collective::describe(call);
}

}  // namespace

Agreement::Agreement(collective::Communicator& host)
    : host_(host), words_(static_cast<std::size_t>(host.world_size()) * kWords) {}

std::span<std::int64_t> Agreement::words_of(int rank) {
  return std::span(words_).subspan(static_cast<std::size_t>(rank) * kWords, kWords);
}

absl::Status Agreement::gather(Deadline deadline) {
  return host_.all_gather(words_.data(), words_.size(), DType::kI64, deadline);
}

absl::Status Agreement::on_setup(const std::string& gpu, int version, Deadline deadline) {
  const std::span<std::int64_t> mine = words_of(host_.rank());
  mine[0] = hash_of(gpu, 0);
  mine[1] = hash_of(gpu, 1);
  mine[2] = version;
  PL_RETURN_IF_ERROR(gather(deadline));
  for (int a = 0; a < host_.world_size(); ++a) {
    if (words_of(a)[2] != words_of(0)[2]) {
      return absl::FailedPreconditionError(
          str_cat("rank ", a, " has NCCL ", version_text(static_cast<int>(words_of(a)[2])), ", and rank 0 ",
                  version_text(static_cast<int>(words_of(0)[2])), ": all need the same"));
    }
    for (int b = 0; b < a; ++b) {
      if (words_of(a)[0] == words_of(b)[0] && words_of(a)[1] == words_of(b)[1])
        return absl::FailedPreconditionError(
            str_cat("rank ", b, " and rank ", a, " have the same GPU, which NCCL does not serve"));
    }
  }
  return absl::OkStatus();
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
