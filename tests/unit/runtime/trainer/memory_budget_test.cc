#include "runtime/trainer/memory_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace paceline::trainer {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t kMiB = std::size_t{1} << 20;

v1::TrainingSpec spec_of(v1::OptimizerSpec::Type optimizer, v1::Precision precision) {
  v1::TrainingSpec spec;
  spec.mutable_optimizer()->set_type(optimizer);
  spec.set_precision(precision);
  return spec;
}

TEST(MemoryBudget, LastingMemoryDependsOnPlaceAndOptimizer) {
  struct Case {
    v1::OptimizerSpec::Type optimizer;
    v1::Precision precision;
    Holding holding;
    std::size_t weights, gradient, state, half;  // MiB, of a mebi parameters
  };
  for (const Case& c :
       {Case{v1::OptimizerSpec::SGD, v1::PRECISION_FP32, Holding::kTrains, 4, 4, 0, 0},
        Case{v1::OptimizerSpec::ADAGRAD, v1::PRECISION_FP32, Holding::kTrains, 4, 4, 4, 0},
        Case{v1::OptimizerSpec::ADAM, v1::PRECISION_BF16, Holding::kTrains, 4, 4, 8, 2},
        Case{v1::OptimizerSpec::ADAMW, v1::PRECISION_FP32, Holding::kCopies, 4, 4, 0, 0},
        Case{v1::OptimizerSpec::ADAMW, v1::PRECISION_BF16, Holding::kCopiesAndEvaluates, 8, 4, 0, 2},
        Case{v1::OptimizerSpec::ADAMW, v1::PRECISION_BF16, Holding::kReads, 4, 0, 0, 2}}) {
    const LastingMemory memory = lasting_memory(spec_of(c.optimizer, c.precision), kMiB, c.holding);
    EXPECT_EQ(memory.weights, c.weights * kMiB);
    EXPECT_EQ(memory.gradient, c.gradient * kMiB);
    EXPECT_EQ(memory.state, c.state * kMiB);
    EXPECT_EQ(memory.half_weights, c.half * kMiB);
    EXPECT_EQ(memory.total(), (c.weights + c.gradient + c.state + c.half) * kMiB);
  }
}

TEST(MemoryBudget, TheDriversPartIsLeft) {
  const LastingMemory needs{.weights = 100 * kMiB};
  const auto check = [&](std::size_t free, std::size_t taken) {
    return check_room(needs, {.now = {free, 320 * kMiB}, .taken = taken});
  };
  EXPECT_TRUE(check(110 * kMiB, 0).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(check(110 * kMiB - 1, 0)));
  EXPECT_TRUE(check(10 * kMiB, 100 * kMiB).ok());
  EXPECT_TRUE(check(0, 100 * kMiB).ok()) << "what has all of it needs no more";
  EXPECT_TRUE(absl::IsResourceExhausted(check(0, 100 * kMiB - 1)));
}

TEST(MemoryBudget, ShortageIsListedByNameWithTheFreeMemory) {
  const LastingMemory needs{.weights = 633 * kMiB,
                            .gradient = 633 * kMiB,
                            .state = 1266 * kMiB,
                            .half_weights = 317 * kMiB,
                            .optimizer = "AdamW"};
  const FoundRoom found{
      .now = {800 * kMiB, 1024 * kMiB}, .free_at_begin = 990 * kMiB, .taken = 100 * kMiB, .members = 4};
  EXPECT_EQ(
      check_room(needs, found).message(),
      "weights, gradient and optimizer state find no room in the device's memory (out of memory): they need "
      "2849 MiB "
      "(633 MiB for weights, 633 MiB for the gradient, 1266 MiB for AdamW's state, 317 MiB for weights "
      "as bf16), and 868 of its 1024 MiB are free for them, beside 32 for the driver; 990 MiB were free "
      "when this member began, and 4 members of this job share the device; take a GPU with more memory, "
      "a smaller model or fewer members on each GPU");
  EXPECT_EQ(
      check_room({.weights = 633 * kMiB}, {.now = {500 * kMiB, 640 * kMiB}, .free_at_begin = 600 * kMiB})
          .message(),
      "weights find no room in the device's memory (out of memory): they need 633 MiB (633 MiB for weights, "
      "before any "
      "gradient and optimizer state), and 480 of "
      "its 640 MiB are free for them, beside 20 for the driver; 600 MiB were free when this member began, "
      "the rest was held by others, as by members on the same GPU; take a GPU with more memory or a "
      "smaller model");
}

TEST(MemoryBudget, SmallerBatchIsAdvisedForAnEvaluationOfSeveralSamples) {
  const absl::Status none = absl::ResourceExhaustedError("9 fit");
  EXPECT_EQ(
      evaluation_room(none, 10, false, true).message(),
      "evaluation finds no room (out of memory): 9 fit; set training.evaluation.batchSize to what fits");
  EXPECT_THAT(std::string(evaluation_room(none, 10, true, true).message()),
              HasSubstr("to what fits: what training takes has its room already"));
  EXPECT_THAT(std::string(evaluation_room(none, 1, false, true).message()), Not(HasSubstr("batchSize")));
  EXPECT_TRUE(absl::IsResourceExhausted(evaluation_room(none, 1, false, true)));
  const absl::Status other = absl::InternalError("a wire");
  EXPECT_EQ(evaluation_room(other, 10, false, true), other);
  EXPECT_TRUE(evaluation_room(absl::OkStatus(), 10, false, true).ok());
}

TEST(MemoryBudget, WithoutAGpuTheMachinesMemoryIsTold) {
  const LastingMemory needs{
      .weights = 100 * kMiB, .gradient = 100 * kMiB, .state = 200 * kMiB, .optimizer = "Adam"};
  const absl::Status none = check_host_room(needs, {.machine = 250 * kMiB});
  EXPECT_EQ(none.message(),
            "weights, gradient and optimizer state find no room in this machine's memory (out of memory): "
            "they need 400 MiB (100 MiB for weights, 100 MiB for the gradient, 200 MiB for Adam's state), "
            "and 250 MiB are free; take a machine with more memory, a smaller model or an optimizer with "
            "less state (SGD without momentum keeps none: 200 MiB)");
  EXPECT_THAT(std::string(evaluation_room(none, 1, false, false).message()), Not(HasSubstr("GPU")));
}

TEST(MemoryBudget, TheLeastBoundOfTheHostCounts) {
  const LastingMemory needs{
      .weights = 100 * kMiB, .gradient = 100 * kMiB, .state = 200 * kMiB, .optimizer = "Adam"};
  using enum HostShortage::Bound;
  struct Case {
    const char* what;
    HostRoom room;
    std::optional<std::size_t> free = std::nullopt;  // MiB; without a value there is room
    HostShortage::Bound bound = kMachine;
  };
  for (const Case& c : {
           Case{"nobody knows", {}},
           Case{"just enough", {.machine = 400 * kMiB, .address_space = 400 * kMiB}},
           Case{"the machine is short", {.machine = 399 * kMiB, .address_space = 500 * kMiB}, 399},
           Case{"the limit is short",
                {.machine = 500 * kMiB, .address_space = 399 * kMiB},
                399,
                kAddressSpace},
           Case{"both are short", {.machine = 300 * kMiB, .address_space = 200 * kMiB}, 200, kAddressSpace},
           Case{"two share enough", {.machine = 400 * kMiB, .at_begin = 800 * kMiB, .members = 2}},
           Case{"two share less", {.machine = 790 * kMiB, .at_begin = 790 * kMiB, .members = 2}, 395, kShare},
           Case{"a member alone shares nothing", {.machine = 400 * kMiB, .at_begin = 10 * kMiB}},
           Case{"what was free at the begin is not known", {.machine = 400 * kMiB, .members = 4}},
       }) {
    const auto lacks = host_shortage(needs, c.room);
    ASSERT_EQ(lacks.has_value(), c.free.has_value()) << c.what;
    EXPECT_EQ(check_host_room(needs, c.room).code(),
              lacks ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kOk)
        << c.what;
    if (!lacks) continue;
    EXPECT_EQ(lacks->free, *c.free * kMiB) << c.what;
    EXPECT_EQ(lacks->bound, c.bound) << c.what;
  }
}

TEST(MemoryBudget, AdviceForTheHostIsWhatHelps) {
  const LastingMemory needs{
      .weights = 100 * kMiB, .gradient = 100 * kMiB, .state = 200 * kMiB, .optimizer = "Adam"};
  const auto lacks = [&](const HostRoom& room) { return host_shortage(needs, room).value(); };
  const HostShortage limit = lacks({.machine = 400 * kMiB, .address_space = 200 * kMiB});
  EXPECT_TRUE(limit.higher_limit && limit.less_state);
  EXPECT_FALSE(limit.more_memory || limit.fewer_members);
  const HostShortage both = lacks({.machine = 399 * kMiB, .address_space = 200 * kMiB});
  EXPECT_TRUE(both.more_memory && both.higher_limit);
  EXPECT_FALSE(lacks({.machine = 199 * kMiB}).less_state);
  const HostShortage shared = lacks({.machine = 700 * kMiB, .at_begin = 700 * kMiB, .members = 2});
  EXPECT_TRUE(shared.fewer_members && shared.less_state);
  EXPECT_FALSE(shared.higher_limit);
  EXPECT_FALSE(lacks({.machine = 300 * kMiB, .at_begin = 300 * kMiB, .members = 2}).fewer_members)
      << "one alone finds no room either";
}

TEST(MemoryBudget, PassesOnProcessorsAreOfTheHostsNeeds) {
  LastingMemory needs{.weights = 100 * kMiB, .gradient = 100 * kMiB, .passes = 200 * kMiB};
  EXPECT_FALSE(host_shortage(needs, {.machine = 400 * kMiB}));
  needs.least_passes = 199 * kMiB;
  EXPECT_TRUE(host_shortage(needs, {.machine = 399 * kMiB}).value().smaller_passes);
  needs.least_passes = 200 * kMiB;
  EXPECT_FALSE(host_shortage(needs, {.machine = 399 * kMiB}).value().smaller_passes)
      << "the weights' copies are the same for one";
}

// What would not be enough is no advice.
TEST(MemoryBudget, AdviceIsWhatHelps) {
  const LastingMemory needs{
      .weights = 100 * kMiB, .gradient = 100 * kMiB, .state = 200 * kMiB, .half_weights = 50 * kMiB};
  const auto advice = [&](std::size_t free, std::size_t evaluation = 0, std::size_t training = 0) {
    const absl::Status status = check_room(needs, {.now = {free + 32 * kMiB, 1024 * kMiB},
                                                   .evaluation = evaluation,
                                                   .training = training,
                                                   .members = 1});
    return std::string(status.message());
  };
  EXPECT_THAT(advice(250 * kMiB), HasSubstr("SGD without momentum keeps none: 250 MiB"));
  EXPECT_THAT(advice(250 * kMiB), Not(HasSubstr("FP32")));
  EXPECT_THAT(advice(249 * kMiB), Not(HasSubstr("optimizer with less")));
  EXPECT_THAT(advice(400 * kMiB), HasSubstr("precision FP32"));
  EXPECT_THAT(advice(400 * kMiB), Not(HasSubstr("members")));
  EXPECT_THAT(advice(200 * kMiB, 250 * kMiB), HasSubstr("evaluation.batchSize (its passes hold 250 MiB)"));
  EXPECT_THAT(advice(200 * kMiB, 0, 250 * kMiB), HasSubstr("microBatchSize (passes hold 250 MiB)"));
  EXPECT_THAT(advice(200 * kMiB, 249 * kMiB, 249 * kMiB), Not(HasSubstr("atchSize")));
}

}  // namespace
}  // namespace paceline::trainer
