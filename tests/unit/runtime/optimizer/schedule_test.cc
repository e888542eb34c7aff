#include "runtime/optimizer/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace paceline::optimizer {
namespace {

v1::OptimizerSpec spec_of(v1::ScheduleSpec::Type type, std::int64_t warmup = 0) {
  v1::OptimizerSpec spec;
  spec.set_learning_rate(0.4);
  spec.mutable_schedule()->set_type(type);
  spec.mutable_schedule()->set_warmup_steps(warmup);
  spec.mutable_schedule()->set_step_every(10);
  spec.mutable_schedule()->set_step_factor(0.5);
  spec.mutable_schedule()->set_final_fraction(0.1);
  return spec;
}

struct Case {
  const char* what;
  v1::ScheduleSpec::Type type;
  std::int64_t warmup, step, total;
  double rate;
};

TEST(Schedule, KnownRates) {
  const Case cases[] = {
      {"constant", v1::ScheduleSpec::CONSTANT, 0, 0, 10, 0.4},
      {"constant, last", v1::ScheduleSpec::CONSTANT, 0, 9, 10, 0.4},
      {"first step of the warm-up", v1::ScheduleSpec::CONSTANT, 4, 0, 10, 0.1},
      {"last step of the warm-up", v1::ScheduleSpec::CONSTANT, 4, 3, 10, 0.4},
      {"after the warm-up", v1::ScheduleSpec::CONSTANT, 4, 4, 10, 0.4},
      {"before the first drop", v1::ScheduleSpec::STEP, 0, 9, 40, 0.4},
      {"first drop", v1::ScheduleSpec::STEP, 0, 10, 40, 0.2},
      {"third drop", v1::ScheduleSpec::STEP, 0, 39, 40, 0.05},
      {"cosine begins at the rate", v1::ScheduleSpec::COSINE, 0, 0, 11, 0.4},
      {"cosine in the middle", v1::ScheduleSpec::COSINE, 0, 5, 11, 0.22},
      {"cosine ends at its fraction", v1::ScheduleSpec::COSINE, 0, 10, 11, 0.04},
      {"past the end", v1::ScheduleSpec::COSINE, 0, 1000, 11, 0.04},
      {"cosine after a warm-up", v1::ScheduleSpec::COSINE, 10, 10, 21, 0.4},
      {"cosine's middle after a warm-up", v1::ScheduleSpec::COSINE, 10, 15, 21, 0.22},
      {"cosine of one step", v1::ScheduleSpec::COSINE, 0, 0, 1, 0.4},
      {"warm-up longer than the job", v1::ScheduleSpec::COSINE, 100, 9, 10, 0.04},
  };
  for (const Case& c : cases) {
    EXPECT_NEAR(learning_rate(spec_of(c.type, c.warmup), c.step, c.total, 3), c.rate, 1e-15) << c.what;
  }
}

TEST(Schedule, ScalesByWorkersWhenAsked) {
  v1::OptimizerSpec spec = spec_of(v1::ScheduleSpec::CONSTANT, 5);
  spec.mutable_schedule()->set_scale_by_workers(true);
  EXPECT_DOUBLE_EQ(learning_rate(spec, 20, 100, 4), 1.6);
  EXPECT_DOUBLE_EQ(learning_rate(spec, 0, 100, 4), 1.6 / 5);
}

TEST(Schedule, CosineNeverRisesAndStaysPositive) {
  const v1::OptimizerSpec spec = spec_of(v1::ScheduleSpec::COSINE);
  double before = INFINITY;
  for (std::int64_t step = 0; step < 500; ++step) {
    const double rate = learning_rate(spec, step, 500, 1);
    EXPECT_TRUE(rate <= before && rate >= 0.04 - 1e-15) << step;
    before = rate;
  }
}

}  // namespace
}  // namespace paceline::optimizer
