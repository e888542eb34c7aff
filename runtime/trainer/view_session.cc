#include "runtime/trainer/view_session.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "base/status.h"
#include "runtime/exchange/exchanges.h"
#include "runtime/optimizer/schedule.h"
#include "runtime/trainer/batch.h"
#include "runtime/trainer/limits.h"
#include "runtime/trainer/plan.h"

namespace paceline::trainer {

namespace {

using member::StepPart;

constexpr Duration kInputTimeout = std::chrono::seconds(120);  // for one batch
constexpr std::uint64_t kAugmentationStream = 0x6175676d656e7401u;

// Of one step; 0 would mean none.
std::uint64_t augmentation_seed(const v1::TrainingSpec& spec, Step step) {
  if (!spec.data().has_augmentation()) return 0;
  return mix64(mix64(spec.seed() + kAugmentationStream) + static_cast<std::uint64_t>(step)) | 1;
}

std::string person_name(const v1::ViewMember& member) {
  const std::string role = member.role() == v1::ROLE_CHIEF ? "chief" : "worker";
  return str_cat(role, "-", member.index());
}

}  // namespace

absl::StatusOr<collective::Group> group_of(const v1::View& view, const std::string& member_id,
                                           const v1::Welcome& welcome) {
  collective::Group group;
  group.generation = Generation{view.generation()};
  group.rank = -1;
  for (const v1::ViewMember& member : view.members()) {
    if (member.member_id() == member_id) group.rank = static_cast<int>(group.members.size());
    collective::Address address{member.host_id(), member.address().local_socket(), {}};
    address.tcp.assign(member.address().tcp().begin(), member.address().tcp().end());
    group.members.push_back({person_name(member), std::move(address)});
  }
  if (group.rank < 0) {
    return absl::InvalidArgumentError(
        str_cat("view ", view.generation(), " lacks this member (", member_id, ")"));
  }
  if (welcome.link_key().size() != group.key.size()) {
    return absl::InvalidArgumentError(
        str_cat("the coordinator's link key has ", welcome.link_key().size(), " bytes instead of 32"));
  }
  std::copy(welcome.link_key().begin(), welcome.link_key().end(), group.key.begin());
  const v1::ExchangeSpec& exchange = welcome.training().exchange();
  group.transport = static_cast<collective::TransportKind>(exchange.transport());
  group.sockets_per_peer = static_cast<int>(exchange.sockets_per_peer());
  return group;
}

std::vector<double> shares_of(const v1::View& view) {
  std::vector<double> shares;
  for (const v1::ViewMember& member : view.members()) shares.push_back(member.share());
  return shares;
}

absl::StatusOr<std::unique_ptr<ViewSession>> ViewSession::open(const SessionParts& parts,
                                                               std::shared_ptr<const data::Dataset> train,
                                                               std::vector<double> shares, Step total_steps) {
  std::unique_ptr<ViewSession> session(
      new ViewSession(parts, std::move(train), std::move(shares), total_steps));
  PL_ASSIGN_OR_RETURN(session->exchange_,
                      exchange::make_exchange(exchange::kAllReduce, parts.spec.exchange(), parts.communicator,
                                              parts.replica.exchanged(), parts.clock));
  session->start_input();
  return session;
}

ViewSession::ViewSession(const SessionParts& parts, std::shared_ptr<const data::Dataset> train,
                         std::vector<double> shares, Step total_steps)
    : parts_(parts),
      train_(std::move(train)),
      shares_(std::move(shares)),
      total_steps_(total_steps),
      ledger_({parts.spec.seed(), train_->size(), parts.spec.global_batch_size()}),
      rows_(data::cut_batch(parts.spec.global_batch_size(),
                            shares_)[static_cast<std::size_t>(parts.communicator.rank())]),
      timeout_(std::chrono::milliseconds(parts.spec.exchange().timeout_ms())) {
  on_ready_ = [this](std::size_t begin, std::size_t end) {
    if (ready_status_.ok()) ready_status_ = exchange_->range_ready(begin, end);
  };
}

void ViewSession::start_input() {
  if (rows_ == 0) return;
  data::PrefetcherOptions options;
  options.first_step = parts_.replica.step();
  options.end_step = total_steps_;
  options.max_rows = rows_;
  options.depth =
      static_cast<int>(std::clamp<std::int64_t>(parts_.spec.data().prefetch(), 0, data::kMaxPrefetchDepth));
  const int rank = parts_.communicator.rank();
  const auto plan = [this, rank](std::int64_t step, std::vector<std::int64_t>& indices) {
    ledger_.samples_of(step, rank, shares_, indices);
    return augmentation_seed(parts_.spec, step);
  };
  input_ = std::make_unique<data::Prefetcher>(train_, plan, parts_.clock, options);
}

absl::StatusOr<StepResult> ViewSession::step(const Agreement& wishes, member::StepClock& clock) {
  const Duration late = rank_zero_saves_ ? kSaveLimit : Duration::zero();
  PL_RETURN_IF_ERROR(exchange_->begin_step(parts_.replica.step(), late));
  ready_status_ = absl::OkStatus();
  if (input_ == nullptr) {
    auto part = clock.part(StepPart::kCompute);
    PL_RETURN_IF_ERROR(no_samples(wishes));
  } else {
    data::Batch batch;
    {
      auto part = clock.part(StepPart::kInput);
      PL_ASSIGN_OR_RETURN(batch, next_batch());
    }
    auto part = clock.part(StepPart::kCompute);
    PL_RETURN_IF_ERROR(passes(batch, wishes));
  }
  PL_RETURN_IF_ERROR(ready_status_);

  StepResult result;
  {
    auto part = clock.part(StepPart::kWait);
    PL_RETURN_IF_ERROR(exchange_->finish(Deadline::after(parts_.clock.now(), timeout_ + late)));
    result.exchange = exchange_->last_times();
    clock.move(StepPart::kWait, StepPart::kTransfer, result.exchange.transfer);
  }
  auto part = clock.part(StepPart::kUpdate);
  PL_RETURN_IF_ERROR(update(result));
  rank_zero_saves_ = result.agreed.save;
  return result;
}

// Its errors are this member's own, whatever their code: no peer is to blame for input.
absl::StatusOr<data::Batch> ViewSession::next_batch() {
  auto batch = input_->next(kInputTimeout);
  if (batch.ok()) return batch;
  return absl::InternalError(
      str_cat("step ", parts_.replica.step(), ": no input: ", batch.status().message()));
}

// The gradient of the whole share, pass by pass; only the last one's ranges are final.
absl::Status ViewSession::passes(const data::Batch& batch, const Agreement& wishes) {
  const float scale = 1.0F / static_cast<float>(parts_.spec.global_batch_size());
  const std::int64_t most = pass_rows(parts_.spec, rows_);
  double loss_sum = 0;
  for (std::int64_t at = 0; at < rows_; at += most) {
    const std::int64_t rows = std::min(most, rows_ - at);
    copy_rows(batch, at, rows, train_->shape(), parts_.program.batch());
    loss_sum += parts_.program.forward(rows).loss_sum;
    const bool last = at + rows == rows_;
    if (last) PL_RETURN_IF_ERROR(declare_controls(loss_sum, wishes));
    parts_.program.backward(scale, at > 0, last ? on_ready_ : not_yet_);
  }
  return absl::OkStatus();
}

absl::Status ViewSession::no_samples(const Agreement& wishes) {
  const std::span<float> gradient = parts_.replica.gradient();
  std::fill(gradient.begin(), gradient.end(), 0.0F);
  PL_RETURN_IF_ERROR(declare_controls(0, wishes));
  return exchange_->range_ready(0, gradient.size());
}

absl::Status ViewSession::declare_controls(double loss_sum, const Agreement& wishes) {
  write_controls({loss_sum, wishes}, parts_.replica.controls());
  const std::size_t begin = parts_.replica.gradient().size();
  return exchange_->range_ready(begin, begin + kControls);
}

absl::Status ViewSession::update(StepResult& result) {
  const Controls sums = read_controls(parts_.replica.controls());
  result.agreed = sums.wishes;
  result.loss = sums.loss_sum / static_cast<double>(parts_.spec.global_batch_size());
  const Step step = parts_.replica.step();
  if (!std::isfinite(result.loss)) {
    return absl::OutOfRangeError(str_cat(
        "step ", step, ": the loss is ", result.loss,
        ", training has diverged; lower optimizer.learningRate, warm it up, or set optimizer.clipNorm"));
  }
  result.learning_rate =
      optimizer::learning_rate(parts_.spec.optimizer(), step, total_steps_, parts_.communicator.world_size());
  const absl::Status updated = parts_.replica.update(result.learning_rate);
  if (!updated.ok()) return absl::OutOfRangeError(str_cat("step ", step, ": ", updated.message()));
  parts_.program.weights_changed();
  return absl::OkStatus();
}

}  // namespace paceline::trainer
