// What a unit's samples may need at once: validation and the members draw the line at the same sample.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/text.h"
#include "controller/api/parse.h"
#include "controller/api/training_spec.h"
#include "runtime/model/wide_and_deep.h"
#include "runtime/trainer/server_session.h"
#include "runtime/trainer/sparse_rows.h"

namespace paceline {
namespace {

constexpr std::uint64_t kSeed = 20261122;
constexpr std::int64_t kMostBatch = 1 << 24;

struct Job {
  std::int64_t workers = 1, embedding = 1;
  std::vector<std::int64_t> vocabularies;
  std::int64_t crosses = 0;
};

// 1 to `most`, each order of magnitude as likely as the others.
std::int64_t any(Rng& rng, double most) {
  return static_cast<std::int64_t>(std::exp(rng.uniform() * std::log(most + 0.5)));
}

Job random_job(Rng& rng) {
  Job job{any(rng, 8), any(rng, 4096), {}, 0};
  const std::int64_t fields = 1 + any(rng, 64);
  const double most = std::exp(rng.uniform() * std::log(1e7));
  for (std::int64_t f = 0; f < fields; ++f) job.vocabularies.push_back(any(rng, most));
  job.crosses = rng.below(2) == 0 ? 0 : static_cast<std::int64_t>(rng.below(6));
  return job;
}

std::string text_of(const Job& job, std::int64_t batch) {
  std::string vocabularies, crosses;
  for (const std::int64_t v : job.vocabularies) vocabularies += str_cat(vocabularies.empty() ? "" : ", ", v);
  for (std::int64_t c = 0; c < job.crosses; ++c) crosses += str_cat(c == 0 ? "" : ", ", "{fields: [0, 1]}");
  return str_cat(
      "apiVersion: paceline.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: clicks}\nspec:\n"
      "  strategy: {type: ParameterServer}\n  replicaSpecs: {worker: {replicas: ",
      job.workers,
      "}, ps: {replicas: 1}}\n  training:\n    model: {type: wide-and-deep, embedding: ", job.embedding,
      ", crosses: [", crosses, "]}\n    data: {format: clicks, clicks: {samples: 100000000, vocabularies: [",
      vocabularies, "]}}\n    optimizer: {learningRate: 0.1}\n    steps: 1\n    globalBatchSize: ", batch,
      "\n");
}

bool validation_takes(const Job& job, std::int64_t batch) {
  const auto parsed = api::parse_training_job(text_of(job, batch), "job.yaml");
  for (const api::Diagnostic& d : parsed.diagnostics) {
    if (d.severity != api::Severity::kError) continue;
    EXPECT_EQ(d.path, "spec.training.globalBatchSize") << api::message(d);
  }
  return parsed.job.has_value();
}

model::WideAndDeepShape shape_of(const Job& job) {
  model::WideAndDeepShape shape{
      static_cast<std::int64_t>(job.vocabularies.size()), job.embedding, {}, job.vocabularies};
  shape.crosses.assign(static_cast<std::size_t>(job.crosses), {0, 1});
  return shape;
}

TEST(UnitLimits, ValidationAndMembersSayTheSame) {
  SCOPED_TRACE(str_cat("seed ", kSeed));
  Rng rng(kSeed, 1);
  int lines = 0;
  for (int i = 0; i < 400; ++i) {
    const Job job = random_job(rng);
    const std::int64_t most = trainer::max_samples_of_pull(shape_of(job));
    const std::int64_t line = most * job.workers;
    if (line > kMostBatch) {
      EXPECT_TRUE(validation_takes(job, kMostBatch)) << text_of(job, kMostBatch);
      continue;
    }
    ASSERT_GE(most, 1) << "a sample is never too much";
    ++lines;
    EXPECT_TRUE(validation_takes(job, line)) << text_of(job, line);
    if (line == kMostBatch) continue;
    EXPECT_FALSE(validation_takes(job, line + 1)) << text_of(job, line + 1);
  }
  EXPECT_GT(lines, 100) << "the line is met";
}

// The members' part of a batch is the one that validation reckons with.
TEST(UnitLimits, TheLargestUnitIsTheShareThatValidationSees) {
  const Job job{3, 4096, std::vector<std::int64_t>(4, 1'000'000), 0};
  const std::int64_t line = 3 * trainer::max_samples_of_pull(shape_of(job));
  const auto parsed = api::parse_training_job(text_of(job, line), "job.yaml");
  ASSERT_TRUE(parsed.job.has_value());
  const auto spec = api::make_training_spec(*parsed.job, {});
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(trainer::unit_rows(*spec), std::vector<std::int64_t>(3, line / 3));
}

}  // namespace
}  // namespace paceline
