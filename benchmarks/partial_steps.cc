// The gain of partial steps where members are slow in turns, beside whole steps with the same delays:
//
//   partial_steps DIGITS.csv.gz [--rounds N] [--steps N] [--rate R] [--tiny]
//
// Four members, each a thread of this process with its own replica and session, train an mlp on the digits, 8
// passes each of a step. So that each stands for one on a machine of its own, a pass sleeps: 4 ms; and 16 ms
// in all of a step in which the member is slow, by chance in one of 10: one member (`one`), or each (`all`).
// Runs with whole steps and with partial ones take turns.
//
// Prints steps and used samples a second, the accuracy on held-out samples after as many steps, the part of
// the samples that was left out, and partial steps over whole ones, run by run, as min/median/max.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/text.h"
#include "controller/api/parse.h"
#include "controller/api/training_spec.h"
#include "runtime/collective/fabric.h"
#include "runtime/tensor/cpu/cpu_device.h"
#include "runtime/trainer/all_reduce_session.h"
#include "runtime/trainer/open_workload.h"
#include "runtime/transport/memory.h"

namespace paceline {
namespace {

constexpr int kMembers = 4;
constexpr std::int64_t kBatch = 512, kPass = kBatch / kMembers / 8;
constexpr Duration kUsual = std::chrono::milliseconds(4), kSlow = std::chrono::milliseconds(16);
constexpr std::uint64_t kSlowOneIn = 10;

struct Options {
  std::string digits;
  int rounds = 5;
  std::int64_t steps = 1000;
  double rate = 0.1;
};

struct Case {
  bool all = false;  // each member is slow now and then, else the first one
  double rate = 0;
  std::uint64_t seed = 0;
};

// A program whose passes take longer than it computes.
class SleepingProgram final : public tensor::Program {
 public:
  SleepingProgram(std::unique_ptr<tensor::Program> program, const Duration& time)
      : program_(std::move(program)), time_(time) {}
  const tensor::ParameterLayout& parameters() const override { return program_->parameters(); }
  std::int64_t max_rows() const override { return program_->max_rows(); }
  void bind(std::span<float> weights, std::span<float> gradients) override {
    program_->bind(weights, gradients);
  }
  void initialize(std::uint64_t seed, std::span<float> weights) const override {
    program_->initialize(seed, weights);
  }
  void weights_changed() override { program_->weights_changed(); }
  tensor::BatchMemory batch() override { return program_->batch(); }
  absl::StatusOr<tensor::ForwardResult> forward(std::int64_t rows) override {
    std::this_thread::sleep_for(time_);
    return program_->forward(rows);
  }
  absl::Status backward(float scale, bool accumulate, const OnReady& on_ready) override {
    return program_->backward(scale, accumulate, on_ready);
  }

 private:
  const std::unique_ptr<tensor::Program> program_;
  const Duration& time_;
};

v1::TrainingSpec spec_of(const Options& options, const Case& of) {
  const std::string text =
      absl::StrFormat(R"(apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: slow-in-turns}
spec:
  strategy: {allReduce: {maxDropRate: %g}}
  replicaSpecs: {worker: {replicas: %d}}
  training:
    model: {type: mlp, hidden: [128], classes: 10}
    data: {format: csv, train: {inputs: "%s"}, testFraction: 0.2, normalize: {scale: 0.0625}}
    optimizer: {type: SGD, learningRate: 0.1, momentum: 0.9}
    globalBatchSize: %d
    microBatchSize: %d
    seed: %d
    steps: %d
)",
                      of.rate, kMembers, options.digits, kBatch, kPass, of.seed + 1, options.steps);
  const api::Parsed parsed = api::parse_training_job(text, "job");
  PL_CHECK(parsed.job.has_value(), "the job is right");
  auto spec = api::make_training_spec(*parsed.job, {});
  PL_CHECK(spec.ok(), "the job is right");
  return *std::move(spec);
}

struct Result {
  double steps_per_second = 0, samples_per_second = 0, accuracy = 0, left_out = 0;
};

// The process ends where anything fails.
template <typename T>
T must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "partial_steps: %s\n", std::string(value.status().message()).c_str());
  std::exit(1);
}

void train(const v1::TrainingSpec& spec, const Case& of, collective::Communicator& communicator,
           Result& result, std::int64_t& left_out) {
  const SystemClock clock;
  const auto rank = static_cast<std::uint64_t>(communicator.rank());
  trainer::Workload workload =
      must(trainer::make_open_workload({}, {.device = tensor::make_cpu_device({.threads = 1})}, {})(spec));
  Duration time = kUsual;
  SleepingProgram program(must(workload.compile(trainer::Purpose::kTraining, kPass, {})), time);
  const auto arena = must(transport::Arena::create(std::size_t{1} << 24));
  const auto replica = must(trainer::Replica::create(spec, program, *arena));
  const auto evaluator = must(trainer::Evaluator::create(
      workload.data.test, must(workload.compile(trainer::Purpose::kEvaluation, kBatch, {}))));
  PL_CHECK(replica->bind(program, trainer::Purpose::kTraining).ok(), "the host's memory");
  PL_CHECK(replica->bind(evaluator->program(), trainer::Purpose::kEvaluation).ok(), "the host's memory");
  const auto session = must(trainer::AllReduceSession::open(
      {spec, clock, *replica, program, communicator, kMembers}, workload.data.train,
      std::vector<double>(kMembers, 1.0 / kMembers), spec.steps()));
  member::StepClock step_clock(clock);
  Rng chance(of.seed, rank);
  const TimePoint begin = clock.now();
  for (std::int64_t step = 0; step < spec.steps(); ++step) {
    const bool slow = chance.below(kSlowOneIn) == 0 && (of.all || rank == 0);
    time = slow ? kSlow : kUsual;
    step_clock.begin();
    left_out += must(session->step({}, step_clock)).left_out;
    step_clock.end();
  }
  const double seconds = std::chrono::duration<double>(clock.now() - begin).count();
  result.steps_per_second = static_cast<double>(spec.steps()) / seconds;
  result.accuracy = must(session->evaluate(*evaluator)).accuracy;
}

Result run(const Options& options, const Case& of) {
  const v1::TrainingSpec spec = spec_of(options, of);
  const SystemClock clock;
  auto ring = collective::make_in_process_group(kMembers, Generation{1}, clock);
  std::vector<Result> results(kMembers);
  std::vector<std::int64_t> left_out(kMembers);
  {
    std::vector<std::jthread> members;
    for (std::size_t i = 0; i < kMembers; ++i)
      members.emplace_back([&, i] { train(spec, of, *ring[i], results[i], left_out[i]); });
  }
  Result result = results[0];
  std::int64_t sum = 0;
  for (const std::int64_t each : left_out) sum += each;
  result.left_out = static_cast<double>(sum) / static_cast<double>(options.steps * kBatch);
  result.samples_per_second = result.steps_per_second * kBatch * (1 - result.left_out);
  return result;
}

std::string spread(std::vector<double> values, int digits) {
  std::ranges::sort(values);
  return absl::StrFormat("%.*f/%.*f/%.*f", digits, values.front(), digits, values[values.size() / 2], digits,
                         values.back());
}

void print(const char* name, const std::vector<Result>& runs) {
  const auto column = [&](double Result::*field, int digits) {
    std::vector<double> values;
    for (const Result& each : runs) values.push_back(each.*field);
    return spread(std::move(values), digits);
  };
  std::printf("| %s | %s | %s | %s | %s |\n", name, column(&Result::steps_per_second, 1).c_str(),
              column(&Result::samples_per_second, 0).c_str(), column(&Result::accuracy, 4).c_str(),
              column(&Result::left_out, 4).c_str());
}

int main_of(const Options& options) {
  std::printf("%d members, %lld steps of %lld samples, maxDropRate %g, %d rounds; min/median/max\n\n",
              kMembers, static_cast<long long>(options.steps), static_cast<long long>(kBatch), options.rate,
              options.rounds);
  std::printf("| slow, steps | steps/s | used samples/s | accuracy | left out |\n|---|---|---|---|---|\n");
  for (const bool all : {false, true}) {
    std::vector<Result> whole, partial, over;
    for (int round = 0; round < options.rounds; ++round) {
      const auto seed = static_cast<std::uint64_t>(round);
      const Result& a = whole.emplace_back(run(options, {all, 0, seed}));
      const Result& b = partial.emplace_back(run(options, {all, options.rate, seed}));
      over.push_back({b.steps_per_second / a.steps_per_second, b.samples_per_second / a.samples_per_second,
                      b.accuracy / a.accuracy, b.left_out});
    }
    const auto ratio = [&](double Result::*field) {
      std::vector<double> values;
      for (const Result& each : over) values.push_back(each.*field);
      return spread(std::move(values), 2);
    };
    print(all ? "all, whole" : "one, whole", whole);
    print(all ? "all, partial" : "one, partial", partial);
    std::printf("| %s, partial over whole | %s | %s | %s | |\n", all ? "all" : "one",
                ratio(&Result::steps_per_second).c_str(), ratio(&Result::samples_per_second).c_str(),
                ratio(&Result::accuracy).c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  paceline::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto next = [&] { return i + 1 < argc ? argv[++i] : ""; };
    if (word == "--rounds") {
      options.rounds = std::atoi(next());
    } else if (word == "--steps") {
      options.steps = std::atoll(next());
    } else if (word == "--rate") {
      options.rate = std::atof(next());
    } else if (word == "--tiny") {
      options.rounds = 1;
      options.steps = 70;
    } else {
      options.digits = word;
    }
  }
  if (options.digits.empty() || options.rounds < 1 || options.steps < 1) {
    std::fprintf(stderr, "usage: partial_steps DIGITS.csv.gz [--rounds N] [--steps N] [--rate R] [--tiny]\n");
    return 2;
  }
  return paceline::main_of(options);
}
