// ncclCommShrink and ncclCommRevoke.

#include <algorithm>
#include <utility>

#include "tests/support/fake_nccl/state.h"

namespace paceline::fake_nccl {

void tell_child(ncclComm& parent) {
  if (parent.child_at != nullptr) *std::exchange(parent.child_at, nullptr) = parent.child.get();
}

}  // namespace paceline::fake_nccl

using namespace paceline::fake_nccl;  // NOLINT: this file is a part of the library of that name

#if defined(PACELINE_FAKE_NCCL_SHRINK)
namespace {

// Whether `excluded` is what all of the parent's ranks that are to stay may say.
ncclResult_t check_excluded(const ncclComm& parent, const std::vector<int>& excluded) {
  const int world = parent.clique->size();
  if (excluded.empty() || std::ranges::adjacent_find(excluded) != excluded.end() || excluded.front() < 0 ||
      excluded.back() >= world)
    return problem(ncclInvalidArgument, "a shrink without some ranks of the parent's");
  if (std::ranges::binary_search(excluded, parent.rank))
    return problem(ncclInvalidArgument, "a rank that is excluded shrinks");
  const auto& others = parent.clique->excluded;
  if (!others.empty() && others != excluded) return problem(ncclInvalidUsage, "ranks exclude different ones");
  return ncclSuccess;
}

}  // namespace

// It gives ncclSuccess, as NCCL does, while it is in progress.
EXPORTED ncclResult_t ncclCommShrink(ncclComm_t communicator, int* excluded_ranks, int count,
                                     ncclComm_t* made, ncclConfig_t* config, int flags) {
  BEGIN_CALL(communicator, parent);
  const std::lock_guard held(lock());
  if (const ncclResult_t busy = must_be_idle(*parent, __func__); busy != ncclSuccess) return busy;
  if (const ncclResult_t wrong = must_be_non_blocking(config); wrong != ncclSuccess) return wrong;
  if (flags != NCCL_SHRINK_DEFAULT && flags != NCCL_SHRINK_ABORT)
    return problem(ncclInvalidArgument, "no such flag of a shrink");
  std::sort(excluded_ranks, excluded_ranks + count);
  const std::vector<int> excluded(excluded_ranks, excluded_ranks + count);
  if (const ncclResult_t wrong = check_excluded(*parent, excluded); wrong != ncclSuccess) return wrong;
  if (flags == NCCL_SHRINK_ABORT) {
    parent->stopped = true;
  } else if (!parent->revoked && parent->ended < parent->collectives) {
    return problem(ncclInvalidUsage, "a shrink of a parent that is at work");
  }
  Clique& clique = *parent->clique;
  clique.excluded = excluded;
  if (clique.child == nullptr) clique.child = std::make_shared<Clique>(clique.size() - count);
  const int rank =
      parent->rank - static_cast<int>(std::ranges::lower_bound(excluded, parent->rank) - excluded.begin());
  clique.child->devices[static_cast<std::size_t>(rank)] =
      clique.devices[static_cast<std::size_t>(parent->rank)];
  parent->child = add_communicator(clique.child, rank);
  parent->child->phase = Phase::kIdle;
  parent->child_at = made;
  parent->shrunk = true;
  // NCCL asks its environment; who sets NCCL_COMM_SHRINK_SHARE_RESOURCES gets this.
  parent->shares = flags == NCCL_SHRINK_DEFAULT && !parent->revoked;
  parent->phase = Phase::kShrinking;
  parent->questions = state().control.questions;
  *made = nullptr;
  ++state().counts.shrinks;
  return ncclSuccess;
}
#endif

#if defined(PACELINE_FAKE_NCCL_REVOKE)
// NCCL 2.28.9 takes it while another call is in progress, and then uses what it has freed.
EXPORTED ncclResult_t ncclCommRevoke(ncclComm_t communicator, int flags) {
  BEGIN_CALL(communicator, c);
  const std::lock_guard held(lock());
  if (const ncclResult_t busy = must_be_idle(*c, __func__); busy != ncclSuccess) return busy;
  if (flags != NCCL_REVOKE_DEFAULT || c->revoked) return problem(ncclInvalidArgument, "not to be revoked");
  c->revoked = c->stopped = true;
  c->phase = Phase::kRevoking;
  c->questions = state().control.questions;
  ++state().counts.revokes;
  return ncclInProgress;
}
#endif
