// Training whose gradients go by NCCL from view to view, as members are lost, leave and join: what is made of
// a communicator that was, and always the weights of one member on its processors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "runtime/nccl/view_exchanges.h"
#include "runtime/trainer/trainer.h"
#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/support/fake_nccl/fake_nccl.h"
#include "tests/support/late_device.h"
#include "tests/support/paths.h"
#include "tests/support/thread_job.h"

namespace paceline::trainer {
namespace {

using cuda::must;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::size_t kElements = 48;  // of the step model

// The work of a LateQueue is done when it is waited for; NCCL's streams know nothing of it.
class LateNccl final : public exchange::GradientExchange {
 public:
  LateNccl(tensor::Queue& queue, std::unique_ptr<exchange::GradientExchange> nccl, std::span<float> gradient,
           int& broadcasts)
      : queue_(queue), nccl_(std::move(nccl)), gradient_(gradient), broadcasts_(broadcasts) {}
  absl::Status begin_step(Step step, Duration late) override {
    ready_.clear();
    return nccl_->begin_step(step, late);
  }
  absl::Status range_ready(std::size_t begin, std::size_t end) override {
    ready_.emplace_back(begin, end);
    return absl::OkStatus();
  }
  absl::Status wait_for_device() override {
    PL_RETURN_IF_ERROR(queue_.set_mark(tensor::kMarksOfExchange));
    PL_RETURN_IF_ERROR(queue_.wait_for_mark(tensor::kMarksOfExchange));
    for (const auto& [begin, end] : std::exchange(ready_, {}))
      PL_RETURN_IF_ERROR(nccl_->range_ready(begin, end));
    return nccl_->wait_for_device();
  }
  absl::Status finish(Deadline deadline) override { return nccl_->finish(deadline); }
  // The state of a LateState is no memory of NCCL's.
  absl::Status broadcast(float* vector, std::size_t count, int root, Deadline deadline) override {
    ++broadcasts_;
    std::vector<float> kept(gradient_.begin(), gradient_.end());
    std::copy_n(vector, count, gradient_.begin());
    const absl::Status sent = nccl_->broadcast(gradient_.data(), count, root, deadline);
    std::copy_n(gradient_.begin(), count, vector);
    std::ranges::copy(kept, gradient_.begin());
    return sent;
  }
  exchange::ExchangeTimes last_times() const override { return nccl_->last_times(); }
  void close(absl::Status reason) override { nccl_->close(std::move(reason)); }

 private:
  tensor::Queue& queue_;
  const std::unique_ptr<exchange::GradientExchange> nccl_;
  const std::span<float> gradient_;
  int& broadcasts_;
  std::vector<std::pair<std::size_t, std::size_t>> ready_;
};

class NcclTraining : public ::testing::Test {
 protected:
  struct Member {
    std::shared_ptr<const cuda::Context> context;
    std::unique_ptr<cuda::Stream> stream;
    std::optional<cuda::DeviceBuffer> gradient;
    std::vector<std::string> opened;  // of each view, how
    int broadcasts = 0;               // of the state, from device to device
  };

  NcclTraining() {
    spec_.mutable_optimizer()->set_type(v1::OptimizerSpec::ADAM);
    spec_.mutable_optimizer()->set_beta1(0.9);
    spec_.mutable_optimizer()->set_beta2(0.999);
    spec_.mutable_optimizer()->set_epsilon(1e-8);
    cuda::fake().reset();
    cuda::fake().control().devices = 8;
    nccl().reset();
    // A machine that is busy with other things does not make it give up.
    limits_.leaving = limits_.abort = limits_.revoke = limits_.shrink = std::chrono::seconds(60);
  }
  void TearDown() override {
    job_.reset();
    EXPECT_EQ(nccl().counts().communicators, 0U);
    EXPECT_EQ(nccl().counts().destroys, 0U);
    EXPECT_THAT(nccl().problems(), IsEmpty());
    members_.clear();
    EXPECT_THAT(cuda::fake().problems(), IsEmpty());
  }
  fake_nccl::FakeNccl& nccl() {
    const std::array names{library_};
    return *reinterpret_cast<fake_nccl::Get>(
        must(must(cuda::SharedObject::open(names)).find(fake_nccl::kGet)))();
  }

  // A job of so many members, each with a GPU.
  ThreadJob& start(int size) {
    job_ = std::make_unique<ThreadJob>(size, spec_, step_workload(kStepTrain, kStepTest));
    for (int m = 0; m < size; ++m) {
      auto member = std::make_unique<Member>();
      member->context =
          must(cuda::Context::open(must(cuda::Driver::open(binary_path(PACELINE_FAKE_CUDA))), m));
      member->stream = std::make_unique<cuda::Stream>(must(cuda::Stream::create(member->context)));
      member->gradient.emplace(must(cuda::DeviceBuffer::create(member->context, kElements * sizeof(float))));
      job_->member(m).workload = workload_of(*member);
      members_.push_back(std::move(member));
    }
    return *job_;
  }
  OpenWorkload workload_of(Member& member) {
    const auto exchanges = std::make_shared<nccl::ViewExchanges>(
        must(nccl::Library::open(library_)), Logger::none(), [] { ADD_FAILURE() << "stuck"; }, limits_,
        /*least_bucket_bytes=*/1);
    const auto open = [exchanges, &member](exchange::DeviceExchangeParts parts,
                                           Deadline deadline) -> absl::StatusOr<exchange::DeviceExchange> {
      PL_RETURN_IF_ERROR(member.context->enter());
      tensor::Queue& queue = parts.queue;
      PL_ASSIGN_OR_RETURN(auto opened, exchanges->open(std::move(parts), *member.stream, deadline));
      member.opened.push_back(opened.how);
      return exchange::DeviceExchange{
          std::make_unique<LateNccl>(queue, std::move(opened.exchange),
                                     std::span(member.gradient->as<float>(), kElements), member.broadcasts),
          opened.how};
    };
    const auto state = [&member](std::shared_ptr<LateQueue> queue, const v1::OptimizerSpec& spec,
                                 const tensor::ParameterLayout& layout) {
      EXPECT_EQ(layout.elements, kElements);
      return std::make_unique<LateState>(std::move(queue), spec, layout, Duration(),
                                         std::span(member.gradient->as<float>(), kElements));
    };
    return [exchanges, late = late_workload(kStepTrain, kStepTest, open, {}, state)](
               const v1::TrainingSpec& spec) -> absl::StatusOr<Workload> {
      PL_ASSIGN_OR_RETURN(Workload workload, late(spec));
      workload.let_exchange_go = [exchanges] { exchanges->let_go(); };
      return workload;
    };
  }

  // At `step` this member is lost, and the others of its view go on in the next one.
  void lose_at(int lost, Step step, const v1::View& next, const std::vector<int>& others) {
    auto& member = job_->member(lost);
    member.at_step(step, [&member] { member.membership->end(absl::AbortedError("evicted by the test")); });
    for (const int rank : others) {
      auto* membership = job_->member(rank).membership.get();
      membership->on_fault = [membership, next, before = membership->on_fault,
                              view = next.generation() - 1](const v1::PeerFault& fault) {
        if (fault.generation() == view) membership->send_view(next);
        if (fault.generation() != view && before != nullptr) before(fault);
      };
    }
  }
  void run() {
    job_->run();
    ThreadJob alone(1, spec_, step_workload(kStepTrain, kStepTest));
    alone.send_view(alone.view(1, {0}));
    alone.run();
    unbroken_ = alone.member(0).hashes;
  }
  void expect_finished(int rank) {
    const auto& member = job_->member(rank);
    EXPECT_EQ(member.outcome.ending, Ending::kFinished) << member.outcome.error;
    EXPECT_FALSE(member.hashes.empty());
    for (const auto& [step, hash] : member.hashes) EXPECT_EQ(hash, unbroken_.at(step)) << "step " << step;
  }
  const std::vector<std::string>& opened(int m) const {
    return members_[static_cast<std::size_t>(m)]->opened;
  }

  std::string library_ = binary_path(PACELINE_FAKE_NCCL);
  v1::TrainingSpec spec_ = step_spec(40, 32);
  nccl::Limits limits_;
  std::map<Step, std::uint64_t> unbroken_;
  std::vector<std::unique_ptr<Member>> members_;
  std::unique_ptr<ThreadJob> job_;
};

constexpr char kAnew[] = "communicator made anew: no rank has an earlier one";

TEST_F(NcclTraining, SurvivorsShrinkTheCommunicator) {
  ThreadJob& job = start(4);
  job.send_view(job.view(1, {0, 1, 2, 3}));
  lose_at(1, 10, job.view(2, {0, 2, 3}), {0, 2, 3});
  lose_at(3, 20, job.view(3, {0, 2}), {0, 2});
  run();
  for (const int rank : {0, 2}) {
    expect_finished(rank);
    EXPECT_EQ(opened(rank), (std::vector<std::string>{kAnew, "communicator shrunk from view 1",
                                                      "communicator shrunk from view 2"}));
  }
  EXPECT_EQ(nccl().counts().inits, 4U);
  EXPECT_EQ(nccl().counts().shrinks, 3U + 2U);
  EXPECT_EQ(nccl().counts().aborts, 3U + 2U) << "the parents";
}

// Without ncclCommRevoke what nothing is under way of is kept all the same.
TEST_F(NcclTraining, AnOlderLibrarysIsShrunkWhereNothingIsUnderWay) {
  library_ = binary_path(PACELINE_FAKE_NCCL_NO_REVOKE);
  nccl().reset();
  ThreadJob& job = start(3);
  job.send_view(job.view(1, {0, 1, 2}));
  lose_at(1, 10, job.view(2, {0, 2}), {0, 2});
  run();
  for (const int rank : {0, 2}) expect_finished(rank);
  EXPECT_EQ(nccl().counts().inits, 3U);
  EXPECT_EQ(nccl().counts().shrinks, 2U);
}

TEST_F(NcclTraining, ADrainToASmallerViewShrinksIt) {
  ThreadJob& job = start(3);
  job.send_view(job.view(1, {0, 1, 2}));
  job.member(0).at_step(12, [&job] {
    const v1::View next = job.view(2, {0, 2});
    job.member(0).membership->drain(Generation{1});
    for (const int rank : {0, 2}) job.member(rank).membership->offer_view(next);
  });
  job.member(0).at_step(30, [&job] { job.member(1).membership->end(absl::AbortedError("nobody needs it")); });
  run();
  for (const int rank : {0, 2}) {
    expect_finished(rank);
    EXPECT_EQ(opened(rank).back(), "communicator shrunk from view 1");
  }
  EXPECT_EQ(nccl().counts().shrinks, 2U);
  EXPECT_EQ(nccl().counts().revokes, 0U);
}

TEST_F(NcclTraining, WithOneThatJoinsItIsMadeAnew) {
  ThreadJob& job = start(4);
  const v1::View first = job.view(1, {0, 1, 2}), next = job.view(2, {0, 2, 3});
  for (const int rank : {0, 1, 2}) job.member(rank).membership->send_view(first);
  lose_at(1, 10, next, {0, 2});
  job.member(0).membership->on_fault = [&job, next](const v1::PeerFault&) {
    for (const int rank : {0, 3}) job.member(rank).membership->send_view(next);
  };
  run();
  for (const int rank : {0, 2, 3}) {
    expect_finished(rank);
    EXPECT_EQ(opened(rank).back(), "communicator made anew: rank 2 has no earlier one");
    EXPECT_GT(members_[static_cast<std::size_t>(rank)]->broadcasts, 0) << "the state stays on the devices";
  }
  EXPECT_EQ(nccl().counts().inits, 3U + 3U);
  EXPECT_EQ(nccl().counts().shrinks, 0U);
}

// Its memory is needed for other things.
TEST_F(NcclTraining, AViewOfOneMemberKeepsNoCommunicator) {
  ThreadJob& job = start(2);
  job.send_view(job.view(1, {0, 1}));
  lose_at(1, 10, job.view(2, {0}), {0});
  std::size_t aborts = 0;
  job.member(0).at_step(11, [&] { aborts = nccl().counts().aborts; });
  run();
  expect_finished(0);
  EXPECT_EQ(aborts, 1U);
  EXPECT_EQ(opened(0).size(), 1U);
}

// The same view goes on without it: nobody is lost for it.
TEST_F(NcclTraining, AShrinkThatFailsCostsNoMember) {
  nccl().control().late = [](fake_nccl::Phase phase, int) {
    return phase == fake_nccl::Phase::kShrinking ? ncclInternalError : ncclNumResults;
  };
  ThreadJob& job = start(3);
  job.send_view(job.view(1, {0, 1, 2}));
  lose_at(1, 10, job.view(2, {0, 2}), {0, 2});
  run();
  for (const int rank : {0, 2}) {
    expect_finished(rank);
    EXPECT_EQ(job.member(rank).membership->faults().size(), 1U);
    EXPECT_THAT(opened(rank).back(), HasSubstr("could not shrink that of the last view"));
  }
  EXPECT_EQ(nccl().counts().inits, 3U + 2U);
}

// Whoever can't open NCCL, and whatever it says: the gradients go by way of the hosts in this view, and by
// NCCL in the next one where it can be opened then.
TEST_F(NcclTraining, HostsCarryTheGradientsWhenNcclDoesNotOpen) {
  constexpr ncclResult_t kErrors[] = {ncclSystemError, ncclInternalError, ncclInvalidUsage};
  constexpr char kLate[] = "late";
  for (const std::string call :
       {"ncclGetUniqueId", "ncclCommInitRankScalable", "ncclCommGetAsyncError", kLate}) {
    for (const ncclResult_t error : kErrors) {
      for (const bool all : {false, true}) {
        SCOPED_TRACE(str_cat(call, " gives ", static_cast<int>(error), all ? " to all" : " to one"));
        nccl().reset();
        std::atomic<bool> broken{true};
        std::atomic<int> asked{0};
        nccl().control().fail = [&](const std::string& name) {
          return broken && name == call && (all || asked++ == 0) ? error : ncclSuccess;
        };
        nccl().control().late = [&](fake_nccl::Phase phase, int rank) {
          const bool fails =
              broken && call == kLate && phase == fake_nccl::Phase::kInit && (all || rank == 1);
          return fails ? error : ncclNumResults;
        };
        ThreadJob& job = start(3);
        job.send_view(job.view(1, {0, 1, 2}));
        job.member(0).at_step(10, [&broken] { broken = false; });
        job.drain_at(0, 10, job.view(2, {0, 1, 2}));
        run();
        for (int rank = 0; rank < 3; ++rank) {
          expect_finished(rank);
          EXPECT_THAT(job.member(rank).membership->faults(), IsEmpty());
          ASSERT_FALSE(opened(rank).empty());
          EXPECT_EQ(opened(rank).back(), kAnew);
        }
        EXPECT_EQ(nccl().counts().aborts + nccl().counts().communicators, nccl().counts().inits)
            << "nothing is left of the first";
        job_.reset();
        EXPECT_EQ(nccl().counts().communicators, 0U);
        EXPECT_THAT(nccl().problems(), IsEmpty());
        members_.clear();
      }
    }
  }
}

}  // namespace
}  // namespace paceline::trainer
