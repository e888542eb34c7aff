#include "runtime/trainer/preflight.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "runtime/trainer/view_group.h"

namespace paceline::trainer {

namespace {

constexpr std::size_t kArenaBytes = std::size_t{4} << 20;
constexpr int kLeastUnits = 3;
constexpr std::size_t kPairsOfThree = 3;

double seconds_of(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// The address part of "host:port" or "[host]:port".
std::string host_of(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

// The pairs of a group, in the order in which they are tested: of three members each has two.
std::vector<std::pair<int, int>> pairs_of(int members) {
  if (members == 2) return {{0, 1}};
  return {{0, 1}, {1, 2}, {0, 2}};
}

}  // namespace

Preflight::Preflight(const std::string& member_id, const v1::Welcome& welcome, collective::Fabric& training,
                     const Workload& workload, const Clock& clock, std::function<bool()> over,
                     PreflightOptions options)
    : member_id_(member_id),
      welcome_(welcome),
      training_(training),
      workload_(workload),
      clock_(clock),
      over_(std::move(over)),
      options_(options) {}

v1::PreflightResult Preflight::answer(const v1::Preflight& word) {
  v1::PreflightResult result;
  result.set_number(word.number());
  const absl::StatusOr<double> computed = compute(word.number());
  if (computed.ok()) result.set_compute_seconds(*computed);
  absl::Status status = computed.status();
  if (word.has_group()) {
    const absl::StatusOr<double> linked = test_links(word);
    if (linked.ok()) result.set_link_seconds(*linked);
    if (status.ok()) status = linked.status();
  } else {
    const absl::Status opened = open();
    if (opened.ok()) {
      const collective::Address address = links_.lock()->fabric->address();
      result.mutable_address()->set_local_socket(address.local_socket);
      for (const std::string& tcp : address.tcp) result.mutable_address()->add_tcp(tcp);
    }
    if (status.ok()) status = opened;
  }
  if (!status.ok()) result.set_error(std::string(status.message()));
  return result;
}

void Preflight::cancel(const absl::Status& why) {
  auto links = links_.lock();
  if (!links->cancelled.ok()) return;
  links->cancelled = absl::CancelledError(why.message());
  if (links->fabric != nullptr) links->fabric->cancel_connects(kLastGeneration);
  if (links->communicator != nullptr) links->communicator->close(absl::AbortedError(why.message()));
}

void Preflight::supersede(std::uint64_t number) {
  auto links = links_.lock();
  links->newest = std::max(links->newest, number);
  if (links->fabric != nullptr) links->fabric->cancel_connects(Generation{number * kPairsOfThree});
  if (links->communicator != nullptr && links->number < number)
    links->communicator->close(absl::AbortedError("another message of the check has come"));
}

absl::Status Preflight::Links::may_test(std::uint64_t message) const {
  if (message < newest) return absl::CancelledError("another message of the check has come");
  return cancelled;
}

// One unit's seconds, as a mean.
absl::StatusOr<double> Preflight::compute(std::uint64_t message) {
  if (workload_.compile_probe == nullptr) return absl::UnimplementedError("this program has no compute test");
  PL_ASSIGN_OR_RETURN(const auto program, workload_.compile_probe());
  std::vector<float> weights(program->parameters().elements);
  program->initialize(0, weights);
  program->bind(weights, {});
  std::ranges::fill(program->batch().inputs, 0.5F);
  PL_RETURN_IF_ERROR(program->forward(program->max_rows()).status());  // takes memory, and packs weights
  const TimePoint from = clock_.now();
  int units = 0;
  while (true) {
    if (over_() || !links_.lock()->may_test(message).ok())
      return absl::CancelledError("nobody waits for the compute test any more");
    PL_RETURN_IF_ERROR(program->forward(program->max_rows()).status());
    ++units;
    const Duration passed = clock_.now() - from;
    if ((units >= kLeastUnits && passed >= options_.compute) || passed >= options_.most_compute)
      return seconds_of(passed) / units;
  }
}

absl::Status Preflight::open() {
  const std::vector<std::string>& tcp = training_.address().tcp;
  if (tcp.empty()) return absl::FailedPreconditionError("this member listens nowhere");
  PL_ASSIGN_OR_RETURN(
      std::shared_ptr<collective::Fabric> fabric,
      collective::Fabric::create({.arena_bytes = kArenaBytes, .tcp_bind = host_of(tcp.front())}, clock_));
  PL_ASSIGN_OR_RETURN(memory_, fabric->arena().allocate(kLinkBytes));
  auto links = links_.lock();
  links->fabric = std::move(fabric);
  return links->cancelled;
}

absl::StatusOr<double> Preflight::test_links(const v1::Preflight& word) {
  if (memory_.empty()) return absl::FailedPreconditionError("this member has made no links ready");
  const int members = word.group().members_size();
  if (members < 2 || members > 3) return absl::InvalidArgumentError("a group for links has 2 or 3 members");
  const TimePoint begin = clock_.now();
  const std::vector<std::pair<int, int>> pairs = pairs_of(members);
  double best = std::numeric_limits<double>::infinity();
  absl::Status failed;
  std::uint64_t generation = word.number() * kPairsOfThree;
  int turn = 0;
  for (const auto& [one, other] : pairs) {
    // A pair whose link is dead takes no other pair's time.
    const Deadline deadline(begin + options_.most_link * ++turn / static_cast<int>(pairs.size()));
    v1::View pair;
    pair.set_generation(++generation);
    for (const int rank : {one, other}) *pair.add_members() = word.group().members(rank);
    if (!is_in(pair, member_id_)) continue;
    PL_ASSIGN_OR_RETURN(collective::Group group, group_of(pair, member_id_, welcome_));
    if (word.apart()) group.transport = collective::TransportKind::kTcp;
    const absl::StatusOr<double> seconds = test_link(group, word.number(), deadline);
    if (seconds.ok()) best = std::min(best, *seconds);
    if (!seconds.ok() && failed.ok()) failed = seconds.status();
  }
  if (best == std::numeric_limits<double>::infinity())
    return failed.ok() ? absl::InvalidArgumentError("the group lacks this member") : failed;
  return best;
}

absl::StatusOr<double> Preflight::test_link(const collective::Group& group, std::uint64_t message,
                                            Deadline deadline) {
  std::shared_ptr<collective::Fabric> fabric;
  {
    auto links = links_.lock();
    PL_RETURN_IF_ERROR(links->may_test(message));
    fabric = links->fabric;
  }
  PL_ASSIGN_OR_RETURN(std::shared_ptr<collective::Communicator> communicator,
                      fabric->connect(group, deadline));
  {
    auto links = links_.lock();
    PL_RETURN_IF_ERROR(links->may_test(message));
    links->communicator = communicator;
    links->number = message;
  }
  const auto all_reduce = [&] {
    return communicator->all_reduce(memory_.data(), memory_.size() / sizeof(float), DType::kF32,
                                    collective::ReduceOp::kMean, deadline);
  };
  absl::Status status = all_reduce();
  std::vector<Duration> times;
  while (status.ok() && times.size() < kLinkTimes) {
    const TimePoint from = clock_.now();
    status = all_reduce();
    times.push_back(clock_.now() - from);
  }
  if (status.ok())
    status = communicator->barrier(deadline);  // a peer that is done would close it under the other
  links_.lock()->communicator.reset();
  PL_RETURN_IF_ERROR(status);
  std::ranges::sort(times);
  return static_cast<double>(kTold) * seconds_of(times[kLinkTimes / 4]);
}

}  // namespace paceline::trainer
