#include "runtime/trainer/passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/step_model.h"

namespace paceline::trainer {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kRows = 4;

// One whose device fails, or whose listener does, in the pass at hand.
class FailingProgram final : public HandMadeProgram {
 public:
  FailingProgram() : HandMadeProgram(kRows) {
    layout_.parameters = {{"w", {16}, 0, 16, true}};
    layout_.elements = layout_.trained_elements = 16;
  }
  void initialize(std::uint64_t, std::span<float>) const override {}
  tensor::BatchMemory batch() override { return {inputs_, {}, labels_}; }
  absl::StatusOr<tensor::ForwardResult> forward(std::int64_t rows) override {
    if (!forward_error.ok()) return forward_error;
    return tensor::ForwardResult{1.5, 0, rows};
  }
  absl::Status backward(float, bool, const OnReady&) override { return backward_error; }

  absl::Status forward_error, backward_error;

 private:
  std::vector<float> inputs_ = std::vector<float>(kRows * kStepModelWidth);
};

class PassesTest : public ::testing::Test {
 protected:
  PassesTest() {
    spec_.set_global_batch_size(kRows);
    batch_.indices = indices_;
    batch_.inputs = inputs_;
    batch_.labels = labels_;
    shape_ = StepDataset(kRows).shape();
  }
  absl::Status run(absl::Status heard = absl::OkStatus()) {
    return Passes(spec_, shape_, program_)
        .run(
            batch_,
            [&](double loss_sum) {
              loss_sum_ = loss_sum;
              return heard;
            },
            nullptr);
  }

  v1::TrainingSpec spec_;
  data::SampleShape shape_;
  FailingProgram program_;
  std::vector<float> inputs_ = std::vector<float>(kRows * kStepModelWidth);
  std::vector<std::int32_t> labels_ = std::vector<std::int32_t>(kRows);
  std::vector<std::int64_t> indices_ = std::vector<std::int64_t>(kRows);
  data::Batch batch_;
  double loss_sum_ = 0;
};

TEST_F(PassesTest, TheLossIsHeard) {
  EXPECT_TRUE(run().ok());
  EXPECT_EQ(loss_sum_, 1.5);
}

TEST_F(PassesTest, TheRestIsLeftOutWhereTheStepDoesNotGoOn) {
  spec_.set_micro_batch_size(1);
  Passes passes(spec_, shape_, program_);
  std::vector<std::int64_t> asked;
  std::vector<std::pair<std::size_t, std::size_t>> ready;
  passes.ask([&](std::int64_t done) {
    asked.push_back(done);
    return done < 2;
  });
  const absl::Status ran = passes.run(
      batch_,
      [&](double loss_sum) {
        loss_sum_ = loss_sum;
        EXPECT_TRUE(ready.empty());
        return absl::OkStatus();
      },
      [&](std::size_t begin, std::size_t end) { ready.emplace_back(begin, end); });
  EXPECT_TRUE(ran.ok()) << ran;
  EXPECT_EQ(asked, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(ready, (std::vector<std::pair<std::size_t, std::size_t>>{{0, 16}}));
  EXPECT_EQ(loss_sum_, 2 * 1.5);
}

// UNAVAILABLE and the like would be taken for a peer's.
TEST_F(PassesTest, ADevicesErrorIsThisMembersOwn) {
  for (absl::Status* const error : {&program_.forward_error, &program_.backward_error}) {
    for (const auto code : {absl::StatusCode::kUnavailable, absl::StatusCode::kDeadlineExceeded,
                            absl::StatusCode::kResourceExhausted, absl::StatusCode::kInternal}) {
      *error = absl::Status(code, "cuLaunchKernel: CUDA_ERROR_ECC_UNCORRECTABLE (214)");
      const absl::Status status = run();
      EXPECT_TRUE(absl::IsInternal(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("this member's device failed: cuLaunchKernel: "));
    }
    *error = absl::OkStatus();
  }
}

TEST_F(PassesTest, AListenersErrorIsItsOwn) {
  const absl::Status status = run(absl::UnavailableError("rank 1 is gone"));
  EXPECT_EQ(status, absl::UnavailableError("rank 1 is gone"));
}

}  // namespace
}  // namespace paceline::trainer
