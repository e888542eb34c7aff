#include "runtime/simulation/virtual_training.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "base/rng.h"
#include "base/status.h"
#include "runtime/data/ledger.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/optimizer/schedule.h"
#include "runtime/tensor/cpu/cpu_device.h"
#include "runtime/tensor/cpu/kernels/kernels.h"
#include "runtime/trainer/batch.h"
#include "runtime/trainer/open_workload.h"
#include "runtime/trainer/plan.h"

namespace paceline::simulation {
namespace {

constexpr Step kEvaluations = 250;  // of a whole training, about
constexpr std::int64_t kEvaluationRows = 512;

// The job's parts that all modes share. Its programs work for one run at a time.
struct Job {
  v1::TrainingSpec spec;
  trainer::Workload workload;
  trainer::StepPlan plan;
  std::unique_ptr<tensor::Program> training, evaluation;
  Step evaluate_every = 1;
  std::size_t elements() const { return training->parameters().elements; }
};

// One training: the servers' state, and what each worker computes.
class Run final : public Observer {
 public:
  Run(const Job& job, const Mode& mode, std::uint64_t seed, optimizer::Optimizer optimizer,
      const pserver::Policy& policy)
      : job_(job),
        seed_(seed),
        mode_(mode),
        policy_(policy),
        optimizer_(std::move(optimizer)),
        ledger_({seed, job.workload.data.train->size(), job.spec.global_batch_size()}),
        shares_(static_cast<std::size_t>(mode.spec.units_per_step()),
                1.0 / static_cast<double>(mode.spec.units_per_step())),
        weights_(job.elements()),
        sum_(job.elements()) {
    job_.training->initialize(seed_, weights_);
    result_.mode = mode;
  }

  void turn(const pserver::Turn& turn) override {
    if (!enough()) keep(compute(turn));
  }

  void dropped(const pserver::Gradient& gradient) override {
    gradients_.erase({gradient.worker, gradient.unit});
  }

  void updated(const pserver::Update& update, double now_ms) override {
    if (enough()) return;
    keep(apply(update));
    for (const pserver::Gradient& gradient : update.gradients)
      gradients_.erase({gradient.worker, gradient.unit});
    const Step before = std::exchange(step_, policy_.step());
    if (step_ / job_.evaluate_every != before / job_.evaluate_every || step_ >= job_.plan.total_steps) {
      keep(evaluate(now_ms));
    }
  }

  bool enough() override { return !status_.ok() || result_.reached || result_.diverged; }

  absl::StatusOr<TrainingResult> finish(const ClusterReport& report) {
    PL_RETURN_IF_ERROR(status_);
    result_.cluster = report;
    return std::move(result_);
  }

 private:
  struct Computed {
    std::vector<float> gradient;
    std::vector<float> read;  // the weights that it was computed with; empty where nobody asks
  };

  void keep(const absl::Status& status) {
    if (status_.ok()) status_ = status;
  }

  absl::Status compute(const pserver::Turn& turn) {
    const std::int64_t parts = mode_.spec.units_per_step();
    ledger_.samples_of(turn.unit / parts, static_cast<int>(turn.unit % parts), shares_, samples_);
    Computed& computed = gradients_[{turn.worker, turn.unit}];
    computed.gradient.assign(job_.elements(), 0);
    if (mode_.spec.delay_compensation() > 0) computed.read = weights_;
    tensor::Program& program = *job_.training;
    program.bind(weights_, computed.gradient);
    program.weights_changed();
    const auto all = static_cast<std::int64_t>(samples_.size());
    const std::int64_t pass =
        std::min(program.max_rows(), trainer::pass_rows(job_.spec, std::max<std::int64_t>(all, 1)));
    for (std::int64_t at = 0; at < all; at += pass) {
      const std::int64_t rows = std::min(pass, all - at);
      const std::span<const std::int64_t> part =
          std::span(samples_).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(rows));
      const data::Dataset& train = *job_.workload.data.train;
      const std::uint64_t step_seed = mix64(seed_ + static_cast<std::uint64_t>(turn.unit / parts)) | 1;
      const std::uint64_t augmentation = job_.spec.data().has_augmentation() ? step_seed : 0;
      PL_RETURN_IF_ERROR(
          train.fetch(part, augmentation, trainer::batch_view(program.batch(), train.shape(), rows)));
      PL_RETURN_IF_ERROR(program.forward(rows).status());
      PL_RETURN_IF_ERROR(program.backward(1 / static_cast<float>(job_.spec.global_batch_size()), at > 0, {}));
    }
    return absl::OkStatus();
  }

  absl::Status apply(const pserver::Update& update) {
    const tensor::cpu::Kernels& kernels = tensor::cpu::kernels();
    std::fill(sum_.begin(), sum_.end(), 0.0f);
    for (const pserver::Gradient& gradient : update.gradients) {
      Computed& computed = gradients_.at({gradient.worker, gradient.unit});
      if (!computed.read.empty()) compensate(computed);
      kernels.add(sum_.data(), computed.gradient.data(), sum_.data(), sum_.size());
    }
    if (update.scale != 1) kernels.scale(sum_.data(), static_cast<float>(update.scale), sum_.size());
    const double rate =
        optimizer::learning_rate(job_.spec.optimizer(), step_, job_.plan.total_steps, mode_.spec.workers());
    const auto step = optimizer_.step(weights_, sum_, rate);
    // The only error there is: the gradient is not finite.
    if (!step.ok()) result_.diverged = true;
    return absl::OkStatus();
  }

  // DC-ASGD (Zheng et al. 2017), for the unit's mean gradient: that is the gradient times the units of a
  // step.
  void compensate(Computed& computed) {
    const double factor = mode_.spec.delay_compensation() * static_cast<double>(mode_.spec.units_per_step());
    float* gradient = computed.gradient.data();
    tensor::cpu::kernels().compensate(static_cast<float>(factor), gradient, weights_.data(),
                                      computed.read.data(), gradient, weights_.size());
  }

  absl::Status evaluate(double now_ms) {
    const data::Dataset& test = *job_.workload.data.test;
    tensor::Program& program = *job_.evaluation;
    program.bind(weights_, {});
    program.weights_changed();
    tensor::ForwardResult sums;
    for (std::int64_t at = 0; at < test.size(); at += program.max_rows()) {
      samples_.resize(static_cast<std::size_t>(std::min(program.max_rows(), test.size() - at)));
      std::iota(samples_.begin(), samples_.end(), at);
      const auto rows = static_cast<std::int64_t>(samples_.size());
      PL_RETURN_IF_ERROR(test.fetch(samples_, 0, trainer::batch_view(program.batch(), test.shape(), rows)));
      PL_ASSIGN_OR_RETURN(const tensor::ForwardResult part, program.forward(rows));
      sums.loss_sum += part.loss_sum;
      sums.correct += part.correct;
      sums.label_count += part.label_count;
    }
    const double loss = sums.loss_sum / static_cast<double>(test.size());
    const double accuracy =
        static_cast<double>(sums.correct) / static_cast<double>(std::max<std::int64_t>(1, sums.label_count));
    result_.evaluations.push_back({now_ms, step_, loss, accuracy});
    result_.diverged = !std::isfinite(loss);
    if (job_.plan.target) {
      result_.reached = trainer::reaches(*job_.plan.target, loss, accuracy, std::nullopt);
    }
    return absl::OkStatus();
  }

  const Job& job_;
  std::uint64_t seed_;
  const Mode& mode_;
  const pserver::Policy& policy_;
  optimizer::Optimizer optimizer_;
  data::Ledger ledger_;
  std::vector<double> shares_;  // of a global batch, by part
  std::vector<float> weights_, sum_;
  std::map<std::pair<int, pserver::Unit>, Computed> gradients_;  // computed, neither applied nor dropped
  std::vector<std::int64_t> samples_;
  Step step_ = 0;
  absl::Status status_;
  TrainingResult result_;
};

class Training final : public VirtualTraining {
 public:
  explicit Training(Job job) : job_(std::move(job)) {}

  Step total_steps() const override { return job_.plan.total_steps; }

  absl::StatusOr<TrainingResult> run(const Mode& mode, const TrainingOptions& options) override {
    if (mode.spec.units_per_step() > job_.spec.global_batch_size()) {
      return absl::InvalidArgumentError(str_cat("globalBatchSize ", job_.spec.global_batch_size(),
                                                " can't be cut into ", mode.spec.units_per_step(),
                                                " gradients; allowed: at most as many workers as samples"));
    }
    PL_ASSIGN_OR_RETURN(const auto policy, pserver::make_policy(mode.spec, {.total_steps = total_steps()}));
    PL_ASSIGN_OR_RETURN(auto optimizer,
                        optimizer::Optimizer::create(job_.spec.optimizer(), job_.training->parameters()));
    Run run(job_, mode, options.training_seed, std::move(optimizer), *policy);
    const ClusterReport report = simulate(*policy,
                                          {.workers = static_cast<int>(mode.spec.workers()),
                                           .delays = options.delays,
                                           .seed = options.seed,
                                           .work = mode.samples_per_gradient()},
                                          &run);
    return run.finish(report);
  }

 private:
  Job job_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<VirtualTraining>> VirtualTraining::open(const v1::TrainingSpec& spec) {
  Job job;
  job.spec = spec;
  const auto open = trainer::make_open_workload({}, {tensor::make_cpu_device({.threads = 1})}, {});
  PL_ASSIGN_OR_RETURN(job.workload, open(spec));
  const data::Datasets& data = job.workload.data;
  if (data.test == nullptr) {
    return absl::InvalidArgumentError(
        "there are no held-out samples to tell the modes apart by: give data.test, or data.testFraction "
        "above 0");
  }
  PL_ASSIGN_OR_RETURN(job.plan, trainer::make_plan(spec, data.train->size(), data.test->size()));
  job.evaluate_every = std::max<Step>(1, job.plan.total_steps / kEvaluations);
  const std::int64_t rows = trainer::pass_rows(spec, spec.global_batch_size());
  PL_ASSIGN_OR_RETURN(job.training, job.workload.compile(trainer::Purpose::kTraining, rows, {}));
  const std::int64_t test_rows = std::min(data.test->size(), kEvaluationRows);
  PL_ASSIGN_OR_RETURN(job.evaluation, job.workload.compile(trainer::Purpose::kEvaluation, test_rows, {}));
  return std::make_unique<Training>(std::move(job));
}

}  // namespace paceline::simulation
