// Programs of a member that has no device of its own; device_training_test has those with one.

#include "runtime/trainer/programs.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "runtime/transport/memory.h"
#include "tests/support/step_model.h"

namespace paceline::trainer {
namespace {

class ProgramsTest : public ::testing::Test {
 protected:
  ProgramsTest() {
    spec_.set_micro_batch_size(8);
    workload_ = *step_workload(kStepTrain, kStepTest)(spec_);
    workload_.compile =
        [this, compile = workload_.compile](
            Purpose purpose, std::int64_t rows,
            const tensor::LeftRoom& leave) -> absl::StatusOr<std::unique_ptr<tensor::Program>> {
      compiled_.emplace_back(purpose, rows);
      if (rows > fits_) return absl::ResourceExhaustedError("too many");
      return compile(purpose, rows, leave);
    };
    arena_ = *transport::Arena::create(std::size_t{1} << 24);
  }
  absl::Status open() {
    return programs_.open([this](const tensor::Program& program) -> absl::StatusOr<Replica*> {
      PL_ASSIGN_OR_RETURN(replica_, Replica::create(spec_, program, *arena_));
      return replica_.get();
    });
  }
  absl::Status compile(std::int64_t rows) { return programs_.compile(std::span(&rows, 1), {2, true, false}); }

  using Compiled = std::vector<std::pair<Purpose, std::int64_t>>;
  v1::TrainingSpec spec_ = step_spec(4, 32);
  Workload workload_;
  const Logger logger_ = Logger::none();
  std::int64_t fits_ = 1000;
  Compiled compiled_;
  std::unique_ptr<transport::Arena> arena_;
  std::unique_ptr<Replica> replica_;
  Programs programs_{spec_, workload_, logger_};
};

TEST_F(ProgramsTest, EvaluationGivesTheReplicaAndTrainingComesWithItsView) {
  ASSERT_TRUE(open().ok());
  ASSERT_NE(replica_, nullptr);
  ASSERT_NE(programs_.evaluator(), nullptr);
  EXPECT_EQ(compiled_.size(), 1u);
  ASSERT_TRUE(compile(20).ok());
  EXPECT_EQ(programs_.training().max_rows(), 8) << "of one pass";
  ASSERT_TRUE(compile(16).ok());
  EXPECT_EQ(compiled_.size(), 2u) << "the next view's passes are no larger";
}

TEST_F(ProgramsTest, SmallProgramGivesTheReplicaWhereNothingIsHeldOut) {
  workload_.data.test = nullptr;
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(programs_.evaluator(), nullptr);
  EXPECT_EQ(compiled_, (Compiled{{Purpose::kTraining, 1}}));
  ASSERT_TRUE(compile(16).ok());
}

TEST_F(ProgramsTest, PassesThatFindNoRoomAreToldWithAdvice) {
  ASSERT_TRUE(open().ok());
  fits_ = 7;
  const absl::Status compiled = compile(20);
  EXPECT_EQ(compiled.code(), absl::StatusCode::kResourceExhausted) << compiled;
  fits_ = 8;
  EXPECT_TRUE(compile(20).ok());
}

}  // namespace
}  // namespace paceline::trainer
